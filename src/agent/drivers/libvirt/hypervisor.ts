// libvirt as hypervisor: every machine is a domain that this driver defines, starts, watches and undefines. A domain without Berth's mark for
// exactly this machine is never touched, whatever its name.

import { basename, join } from 'node:path';
import type { Accelerator } from '../../../api/agent-protocol.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { ProcessIdentity } from '../../host/processes.ts';
import type { HostGuard } from '../../network/host-guard.ts';
import type { HostNetwork } from '../../network/host-network.ts';
import type { AcceleratorSetting } from '../accelerator-setting.ts';
import type { Fingerprint, GuestSpec } from '../driver.ts';
import { diskFull } from '../guest-life/disk/disk.ts';
import type { Hypervisor, Machine, MachineSocket, Run, RunEnd } from '../guest-life/hypervisor.ts';
import { type GuestAgentUse, noGuestAgent } from '../guest-life/ways-in/guest-agent.ts';
import { refusePorts } from '../guest-life/ways-in/guest-link.ts';
import { createHostLook, type HostLook, type HostLookOptions } from '../qemu/host-look.ts';
import { findProcessOf } from '../qemu/processes.ts';
import { talkByLibvirt } from './agent-talk.ts';
import { type Connection, driverErrorOf } from './connection.ts';
import { type DomainLog, readDomainLog } from './domain/domain-log.ts';
import { lookAtDomain } from './domain/domain-sight.ts';
import { DomainRuns, type DomainRunsOptions } from './domain/domain-runs.ts';
import {
  consoleSocket,
  domainName,
  type LiveDomain,
  readLiveDomain,
  runnerSockets,
  userNetwork,
} from './domain/domain-xml.ts';
import { adviceOn } from './host-advice.ts';
import { LibvirtAccelerator } from './libvirt-accelerator.ts';
import type { Domain } from './libvirt.ts';
import { NetworkGuard } from './network-guard.ts';
import { domainsOf, isOurs } from './domain/our-domains.ts';
import { checkPaths, noNetwork } from './domain/start-domain.ts';

export interface LibvirtHypervisorOptions extends Omit<DomainRunsOptions, 'networkGuard' | 'logDirectory'> {
  /** The guard for the user that libvirt runs QEMU as. Absent: guests on the network `user` reach everything that their host reaches. */
  readonly networkGuard?: HostGuard;
  /** Default `auto`: KVM where a probe guest ran under it, else TCG. */
  readonly accelerator?: AcceleratorSetting;
  readonly probeImage?: HostLookOptions['probeImage'];
  readonly qemuImg: string;
  readonly root: HostLookOptions['root'];
  /** Where libvirt logs the output of its QEMU domains. Default /var/log/libvirt/qemu. */
  readonly logDirectory?: string;
  /** Of libvirt's configuration. Default /etc/libvirt. */
  readonly configurationDirectory?: string;
}

const fingerprintPatienceMs = 3000;
/** As long as every id of an instance. */
const sampleId = `inst_${'0'.repeat(26)}`;

export function createLibvirtHypervisor(options: LibvirtHypervisorOptions): Hypervisor {
  return new LibvirtHypervisor(options);
}

class LibvirtHypervisor implements Hypervisor {
  readonly name = 'libvirt';
  readonly volumes = true;
  readonly measures = true;
  readonly suspends = true;
  readonly runs = true;
  readonly migrates = true;
  readonly network?: HostNetwork;
  readonly fallBack?: NonNullable<HostLook['fallBack']>;
  readonly #options: LibvirtHypervisorOptions;
  readonly #connection: Connection;
  readonly #hostLook: HostLook;
  readonly #accelerator: LibvirtAccelerator;
  readonly #networkGuard: NetworkGuard;
  readonly #runs: DomainRuns;
  readonly #logDirectory: string;

  constructor(options: LibvirtHypervisorOptions) {
    const { connection, clock, root, log, network, hostNetwork } = options;
    const setting = options.accelerator ?? 'auto';
    this.#options = options;
    this.#connection = connection;
    this.#logDirectory = options.logDirectory ?? '/var/log/libvirt/qemu';
    this.#hostLook = createHostLook({
      clock,
      qemu: 'qemu-system-x86_64',
      qemuImg: options.qemuImg,
      root,
      accelerator: setting,
      probeImage: options.probeImage,
    });
    this.#accelerator = new LibvirtAccelerator({ connection, hostLook: this.#hostLook, setting });
    this.#networkGuard = new NetworkGuard({
      guard: options.networkGuard,
      capabilities: () => connection.ask((libvirt) => libvirt.capabilities()),
      root,
      inUse: hostNetwork === undefined && network === userNetwork,
      log,
    });
    const logDirectory = this.#logDirectory;
    this.#runs = new DomainRuns({ ...options, networkGuard: this.#networkGuard, logDirectory });
    if (hostNetwork !== undefined) this.network = hostNetwork;
    if (this.#hostLook.fallBack !== undefined) this.fallBack = this.#hostLook.fallBack;
  }

  refuse(spec: GuestSpec): DriverError | undefined {
    return refusePorts(this.network, spec);
  }

  chosenAccelerator(): Promise<Accelerator> {
    return this.#accelerator.choose();
  }

  changes(): number {
    return this.#hostLook.changes();
  }

  async fingerprint(): Promise<Fingerprint> {
    const qemu = await this.#hostLook.fingerprint();
    if (!qemu.available) return qemu;
    try {
      return await this.#fingerprintWith(qemu);
    } catch (error) {
      return { available: false, reason: describeError(error) };
    }
  }

  async #fingerprintWith(qemu: Fingerprint): Promise<Fingerprint> {
    const { network, root } = this.#options;
    checkPaths(join(await root(), sampleId), 'run guests');
    const seen = await this.#connection.ask(
      async (libvirt) => ({
        version: await libvirt.version(),
        network: this.network !== undefined || network === userNetwork || (await libvirt.hasNetwork(network)),
      }),
      fingerprintPatienceMs,
    );
    const fault = await this.network?.fault();
    if (fault !== undefined) return { available: false, version: seen.version, reason: fault };
    if (!seen.network) return { available: false, version: seen.version, reason: noNetwork(network) };
    const chosen = await this.chosenAccelerator();
    const slower =
      qemu.accelerator === 'kvm' && chosen === 'tcg'
        ? 'KVM works, but libvirt does not offer it; guests run under TCG, ten times slower'
        : qemu.reason;
    const advice = await adviceOn({
      configuration: this.#options.configurationDirectory ?? '/etc/libvirt',
      root: await root(),
    });
    const open = await this.#networkGuard.fault();
    const reason = [slower, ...advice, open].filter((each) => each !== undefined).join('; ');
    return {
      available: true,
      version: seen.version,
      accelerator: chosen,
      ...(reason === '' ? {} : { reason }),
    };
  }

  start(machine: Machine, { accelerator }: { readonly accelerator: Accelerator }): Promise<Run> {
    return this.#runs.start(machine, accelerator);
  }

  find(machine: Machine): Promise<Run | null> {
    return this.#runs.find(machine);
  }

  async running({
    instanceId,
    directory,
  }: {
    readonly instanceId: string;
    readonly directory: string;
  }): Promise<string | undefined> {
    const connection = this.#connection;
    for (const { domain, mark } of await domainsOf(connection, { instanceId, uuid: undefined })) {
      if (!isOurs(mark, { instanceId, directory })) continue;
      const { running } = await lookAtDomain({ connection, domain, loggedReason: async () => undefined });
      if (running) return `domain ${domain.name} runs`;
    }
    return undefined;
  }

  async purge({ directory, uuid }: { readonly directory: string; readonly uuid?: string }): Promise<void> {
    const instanceId = basename(directory);
    for (const { domain, mark } of await domainsOf(this.#connection, { instanceId, uuid })) {
      if (!isOurs(mark, { instanceId, directory })) continue;
      await this.#connection.apart((libvirt) => libvirt.destroy(domain));
      await this.#connection.ask((libvirt) => libvirt.undefine(domain));
    }
    await this.#networkGuard.forget(directory);
  }

  settle(): Promise<void> {
    return this.#networkGuard.settle();
  }

  close(): void {
    this.#networkGuard.stop();
  }

  async startError({ record, directory }: Machine, end: RunEnd): Promise<DriverError> {
    const { words } = await this.#logOf(record.instanceId);
    if (/No space left/i.test(words)) return diskFull(`cannot start ${record.instanceId}`, directory);
    return new DriverError(
      'HypervisorFailed',
      `cannot start ${record.instanceId}: ${end.detail}${words === '' ? '' : `: ${words}`}`,
    );
  }

  async lastWords(directory: string): Promise<string> {
    return (await this.#logOf(basename(directory))).words;
  }

  #logOf(instanceId: string): Promise<DomainLog> {
    return readDomainLog(this.#logDirectory, domainName(instanceId));
  }

  async guestAgent({ record: { instanceId, uuid } }: Machine): Promise<GuestAgentUse> {
    const found = await this.#liveDomain(uuid, `find the guest agent of ${instanceId}`);
    if (found === undefined) throw new DriverError('NotPossible', `guest ${instanceId} does not run`);
    // Asks only a connected agent: for each question without one, libvirt writes an error into its log.
    if (!found.live.guestAgentConnected) throw noGuestAgent();
    return talkByLibvirt(this.#connection, found.domain);
  }

  async consoleWriter({ record }: Machine): Promise<ProcessIdentity | undefined> {
    return (await findProcessOf(record.uuid)) ?? undefined;
  }

  /** libvirt's log daemon limits its own logs. */
  async trimLogs(): Promise<void> {}

  async socketOf({ record, directory }: Machine, socket: MachineSocket): Promise<string> {
    if (socket === 'console') return join(directory, consoleSocket);
    if (socket === 'runner' || socket === 'runnerSerial') return join(directory, runnerSockets[socket]);
    const live = (await this.#liveDomain(record.uuid, `find the ${socket} of ${record.instanceId}`))?.live;
    const path = socket === 'vnc' ? live?.vncSocket : live?.guestAgentSocket;
    if (path === undefined) {
      throw new DriverError('HypervisorFailed', `${record.instanceId} has no ${socket} socket: it does not run`);
    }
    return path;
  }

  /** Undefined: libvirt knows no such domain. */
  async #liveDomain(
    uuid: string,
    what: string,
  ): Promise<{ readonly domain: Domain; readonly live: LiveDomain } | undefined> {
    try {
      return await this.#connection.ask(async (libvirt) => {
        const domain = await libvirt.byUuid(uuid);
        return domain && { domain, live: readLiveDomain(await libvirt.xml(domain)) };
      });
    } catch (error) {
      throw driverErrorOf(what, error);
    }
  }
}
