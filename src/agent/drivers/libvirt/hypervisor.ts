// libvirt as hypervisor: every machine a domain that it defines, starts, watches and forgets. A domain that does not carry Berth's mark of
// exactly this machine is never touched, whatever its name.

import { basename, join } from 'node:path';
import type { Accelerator } from '../../../api/agent-protocol.ts';
import type { Clock } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import type { HostGuard } from '../../network/host-guard.ts';
import type { HostNetwork } from '../../network/host-network.ts';
import type { AcceleratorSetting } from '../accelerator-setting.ts';
import type { Fingerprint } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { createHostLook, type HostLookOptions, onlyKvm } from '../qemu/host-look.ts';
import { findProcessOf } from '../qemu/processes.ts';
import { diskFull } from '../guest-life/disk/disk.ts';
import { noGuestAgent } from '../guest-life/ways-in/guest-agent.ts';
import { adoptPublished, connectGuest, hostNetworkOf, startPublished } from '../guest-life/ways-in/guest-link.ts';
import { hostBootId } from '../guest-life/host-boot.ts';
import type { Hypervisor, Machine, Run } from '../guest-life/hypervisor.ts';
import { talkByLibvirt } from './agent-talk.ts';
import { type Connection, isLost } from './connection.ts';
import { readDomainLog } from './domain-log.ts';
import {
  consoleSocket,
  type DomainMark,
  domainName,
  domainXml,
  readLiveDomain,
  readMark,
  socketPathBytesMax,
  userNetwork,
} from './domain-xml.ts';
import { adviceOn } from './host-advice.ts';
import type { Domain, Libvirt } from './libvirt.ts';
import type { PortForwarder } from '../../network/port-forwarder.ts';
import { publishAgain, publishByAgent } from '../../network/publish-ports.ts';
import { publishByQemu } from './published-ports.ts';
import { NetworkGuard } from './network-guard.ts';
import { LibvirtError } from './wire/rpc.ts';
import { type DomainRun, type DomainRunOptions, endedRun, lookAtDomain, superviseDomain } from './run.ts';
import { XmlError } from './wire/xml.ts';

export interface LibvirtHypervisorOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** A network of libvirt's, by name, or `user`. */
  readonly network: string;
  /** Where guests are connected instead. */
  readonly hostNetwork?: HostNetwork;
  /** Of the user that libvirt runs QEMU as. Absent: guests on the network `user` reach all that their host does. */
  readonly networkGuard?: HostGuard;
  /** Where published ports listen. */
  readonly bindAddress: string;
  /** Default `auto`: KVM where a probe guest ran under it, else TCG. */
  readonly accelerator?: AcceleratorSetting;
  readonly probeImage?: HostLookOptions['probeImage'];
  readonly qemuImg: string;
  /** How long a guest is given to let go of a volume. */
  readonly detachPatienceMs?: number;
  readonly root: HostLookOptions['root'];
  /** Where libvirt logs what its QEMU domains say. Default /var/log/libvirt/qemu. */
  readonly logDirectory?: string;
  /** Of libvirt's configuration. Default /etc/libvirt. */
  readonly configurationDirectory?: string;
}

const fingerprintPatienceMs = 3000;
/** As long as every id of an instance. */
const sampleId = `inst_${'0'.repeat(26)}`;

export function createLibvirtHypervisor(options: LibvirtHypervisorOptions): Hypervisor {
  const { connection, clock, log, network, hostNetwork, bindAddress, root } = options;
  const setting = options.accelerator ?? 'auto';
  const logDirectory = options.logDirectory ?? '/var/log/libvirt/qemu';
  const hostLook = createHostLook({
    clock,
    qemu: 'qemu-system-x86_64',
    qemuImg: options.qemuImg,
    root,
    accelerator: setting,
    probeImage: options.probeImage,
  });
  const networkGuard = new NetworkGuard({
    guard: options.networkGuard,
    capabilities: () => connection.ask((libvirt) => libvirt.capabilities()),
    root,
    inUse: hostNetwork === undefined && network === userNetwork,
    log,
  });
  let offering: Promise<boolean> | undefined;

  /** The same until the agent restarts. */
  const offersKvm = (): Promise<boolean> => {
    offering ??= connection
      .ask((libvirt) => libvirt.capabilities())
      .then(
        (capabilities) => /<domain type=['"]kvm['"]/.test(capabilities),
        (error: unknown) => {
          offering = undefined; // what is missing may be installed later
          throw error;
        },
      );
    return offering;
  };
  /** KVM where the probe guest ran under it, and libvirt sees it too. */
  const accelerator = async (): Promise<Accelerator> => {
    const chosen = await hostLook.chosenAccelerator();
    if (chosen === 'tcg') return chosen;
    if (await offersKvm()) return 'kvm';
    if (setting === 'kvm') throw new DriverError('HypervisorFailed', onlyKvm('libvirt does not offer it'));
    return 'tcg';
  };
  const chosenAccelerator = (): Promise<Accelerator> => {
    return accelerator().catch((error: unknown) => {
      throw error instanceof DriverError ? error : failed('choose how guests run', error);
    });
  };

  const runOptions = ({ record, directory, log: machineLog }: Machine, domain: Domain): DomainRunOptions => ({
    ...options,
    domain,
    directory,
    log: machineLog,
    publishedPorts: record.ports.map(({ hostPort }) => hostPort),
    async loggedReason() {
      // After the host's own restart the log tells of the shutdown of the host, which is not the guest's.
      if (record.hostBootId !== (await hostBootId())) return undefined;
      return (await readDomainLog(logDirectory, domain.name)).reason;
    },
    loggedWords: async () => (await readDomainLog(logDirectory, domain.name)).words,
  });

  /** Follows a domain that runs; its ports are given back with its end. */
  const follow = (machine: Machine, domain: Domain, publish?: (run: DomainRun) => PortForwarder): Run => {
    const run = superviseDomain(runOptions(machine, domain));
    const forwarder = publish?.(run);
    if (forwarder === undefined) return run;
    const ended = run.ended.then(async (end) => {
      await forwarder.close();
      return end;
    });
    return { ...run, ended };
  };

  const find = async (machine: Machine): Promise<Run | null> => {
    const { record, directory } = machine;
    const { instanceId, uuid } = record;
    const known = await domainsOf(connection, { instanceId, uuid });
    const ours = known.find(({ mark, domain }) => domain.uuid === uuid && isOurs(mark, { instanceId, directory }));
    if (ours === undefined) return null;
    const { domain } = ours;
    const seen = await lookAtDomain(runOptions(machine, domain));
    if (!seen.running) {
      // Looked for because an agent died, it has its end told; looked for to be started, it just does not run.
      const ranWhenLastSeen = record.state === 'running' && !record.launching;
      const ranInBetween =
        record.launching && record.state !== 'failed' && (await hasRunSinceDefined(connection, domain));
      return ranWhenLastSeen || ranInBetween ? endedRun(seen.end) : null;
    }
    if (record.network !== undefined) return adoptPublished(machine, { clock, bindAddress }, follow(machine, domain));
    if (network === userNetwork) {
      // Only an agent that died between its start and its ports left some out.
      if (record.launching) await publishByQemu(connection, domain, { record, bindAddress });
      return follow(machine, domain);
    }
    return follow(machine, domain, (run) =>
      publishAgain({ record, bindAddress, target: run.currentAddress, clock, log: machine.log }),
    );
  };

  const start = async (machine: Machine, chosen: Accelerator): Promise<Run> => {
    const { record, directory } = machine;
    const what = `start ${record.instanceId}`;
    checkPaths(directory, what);
    if (record.image === undefined) {
      throw new DriverError('Internal', `cannot ${what}: its record does not say which image its disk stands on`);
    }
    const spec = { ...record, image: record.image, directory };
    const xml = domainXml(spec, { accelerator: chosen, network });
    if (record.network !== undefined) {
      await makeRoom(connection, { record, directory });
      await connectGuest(hostNetwork, machine);
      return startPublished(machine, { clock, bindAddress }, () => startDefined(machine, xml));
    }
    if (network === userNetwork)
      await networkGuard.close({ instanceId: record.instanceId, directory, log: machine.log });
    else await ensureNetwork(connection, network, what);
    await makeRoom(connection, { record, directory });
    // The agent's own ports first: a guest whose ports are taken must not boot.
    let run: DomainRun | undefined;
    const forwarder =
      network === userNetwork
        ? undefined
        : await publishByAgent({ record, bindAddress, target: async () => run?.currentAddress(), clock, log });
    try {
      return await startDefined(machine, xml, async (defined) => {
        if (network === userNetwork) await publishByQemu(connection, defined, { record, bindAddress });
        return forwarder && ((followed) => ((run = followed), forwarder));
      });
    } catch (error) {
      await forwarder?.close();
      throw error;
    }
  };

  /** `publish` runs as soon as the domain does. */
  const startDefined = async (
    machine: Machine,
    xml: string,
    publish: (domain: Domain) => Promise<Parameters<typeof follow>[2]> = async () => undefined,
  ): Promise<Run> => {
    const domain = await connection.ask((libvirt) => libvirt.define(xml));
    try {
      await startDomain(connection, domain);
      return follow(machine, domain, await publish(domain));
    } catch (error) {
      await connection
        .apart((libvirt) => libvirt.destroy(domain))
        .catch((failure: unknown) =>
          machine.log.warn('cannot end what was started in vain; the next start finds it', {
            error: describeError(failure),
          }),
        );
      throw error;
    }
  };

  const fingerprint = async (): Promise<Fingerprint> => {
    const qemu = await hostLook.fingerprint();
    if (!qemu.available) return qemu;
    try {
      checkPaths(join(await root(), sampleId), 'run guests');
      const seen = await connection.ask(
        async (libvirt) => ({
          version: await libvirt.version(),
          network: hostNetwork !== undefined || network === userNetwork || (await libvirt.hasNetwork(network)),
        }),
        fingerprintPatienceMs,
      );
      const fault = await hostNetwork?.fault();
      if (fault !== undefined) return { available: false, version: seen.version, reason: fault };
      if (!seen.network) return { available: false, version: seen.version, reason: noNetwork(network) };
      const chosen = await chosenAccelerator();
      const slower =
        qemu.accelerator === 'kvm' && chosen === 'tcg'
          ? 'KVM works, but libvirt does not offer it; guests run under TCG, ten times slower'
          : qemu.reason;
      const advice = await adviceOn({
        configuration: options.configurationDirectory ?? '/etc/libvirt',
        root: await root(),
      });
      const open = await networkGuard.fault();
      const reason = [slower, ...advice, open].filter((each) => each !== undefined).join('; ');
      return {
        available: true,
        version: seen.version,
        accelerator: chosen,
        ...(reason === '' ? {} : { reason }),
      };
    } catch (error) {
      return { available: false, reason: describeError(error) };
    }
  };

  return {
    name: 'libvirt',
    volumes: true,
    suspends: true,
    ...hostNetworkOf(hostNetwork),
    fingerprint,
    chosenAccelerator,
    changes: hostLook.changes,
    ...(hostLook.fallBack === undefined ? {} : { fallBack: hostLook.fallBack }),
    start: (machine, call) =>
      start(machine, call.accelerator).catch((error: unknown) => {
        throw startFailure(machine, error);
      }),
    find: (machine) => find(machine),
    async running({ instanceId, directory }) {
      for (const { domain, mark } of await domainsOf(connection, { instanceId, uuid: undefined })) {
        if (!isOurs(mark, { instanceId, directory })) continue;
        const { running } = await lookAtDomain({ connection, domain, loggedReason: async () => undefined });
        if (running) return `domain ${domain.name} runs`;
      }
      return undefined;
    },
    async purge({ directory, uuid }) {
      const instanceId = basename(directory);
      for (const { domain, mark } of await domainsOf(connection, { instanceId, uuid })) {
        if (!isOurs(mark, { instanceId, directory })) continue;
        await connection.apart((libvirt) => libvirt.destroy(domain));
        await connection.ask((libvirt) => libvirt.undefine(domain));
      }
      await networkGuard.forget(directory);
    },
    settle: () => networkGuard.settle(),
    close: () => networkGuard.stop(),
    async startError({ record, directory }, end) {
      const { words } = await readDomainLog(logDirectory, domainName(record.instanceId));
      if (/No space left/i.test(words)) return diskFull(`cannot start ${record.instanceId}`, directory);
      return new DriverError(
        'HypervisorFailed',
        `cannot start ${record.instanceId}: ${end.detail}${words === '' ? '' : `: ${words}`}`,
      );
    },
    lastWords: async (directory) => (await readDomainLog(logDirectory, domainName(basename(directory)))).words,
    async guestAgent({ record: { instanceId, uuid } }) {
      const found = await connection
        .ask(async (libvirt) => {
          const domain = await libvirt.byUuid(uuid);
          return domain && { domain, live: readLiveDomain(await libvirt.xml(domain)) };
        })
        .catch((error: unknown) => {
          throw error instanceof DriverError ? error : failed(`find the guest agent of ${instanceId}`, error);
        });
      if (found === undefined) throw new DriverError('NotPossible', `guest ${instanceId} does not run`);
      // Asked only where there is one: each time that there is none libvirt writes an error into its log.
      if (!found.live.guestAgentConnected) throw noGuestAgent();
      return talkByLibvirt(connection, found.domain);
    },
    consoleWriter: async ({ record }) => (await findProcessOf(record.uuid)) ?? undefined,
    trimLogs: async () => {}, // libvirt's log daemon keeps its own logs within bounds
    async socketOf({ record, directory }, socket) {
      if (socket === 'console') return join(directory, consoleSocket);
      const xml = await connection
        .ask(async (libvirt) => {
          const domain = await libvirt.byUuid(record.uuid);
          return domain && libvirt.xml(domain);
        })
        .catch((error: unknown) => {
          throw error instanceof DriverError ? error : failed(`find the ${socket} of ${record.instanceId}`, error);
        });
      const live = xml === undefined ? undefined : readLiveDomain(xml);
      const path = socket === 'vnc' ? live?.vncSocket : live?.guestAgentSocket;
      if (path === undefined) {
        throw new DriverError('HypervisorFailed', `${record.instanceId} has no ${socket} socket: it does not run`);
      }
      return path;
    },
  };
}

/** A fresh definition has no reason for not running; one that has one ran since, and ended by itself. */
async function hasRunSinceDefined(connection: Connection, domain: Domain): Promise<boolean> {
  const { reason } = await connection.ask((libvirt) => libvirt.state(domain));
  return reason === shutdownReason || reason === crashedReason;
}
const shutdownReason = 1;
const crashedReason = 3;

/** What has the name or the uuid of an instance's domain, each once, whoever made it. */
function domainsOf(
  connection: Connection,
  { instanceId, uuid }: { readonly instanceId: string; readonly uuid: string | undefined },
): Promise<readonly { readonly domain: Domain; readonly mark: DomainMark | undefined }[]> {
  return connection.ask(async (libvirt) => {
    const byName = await libvirt.byName(domainName(instanceId));
    const byUuid = uuid === undefined || byName?.uuid === uuid ? undefined : await libvirt.byUuid(uuid);
    const found = [byName, byUuid].filter((domain) => domain !== undefined);
    return Promise.all(found.map(async (domain) => ({ domain, mark: readMark(await libvirt.xml(domain)) })));
  });
}

/** Of this instance, and of the agent whose directory this is: two agents may share one libvirt. */
function isOurs(
  mark: DomainMark | undefined,
  { instanceId, directory }: { readonly instanceId: string; readonly directory: string },
): boolean {
  return mark?.instanceId === instanceId && mark.directory === directory;
}

/**
 * Takes away what an earlier start of this machine defined, so that what libvirt remembers of a run is of the next one. Throws
 * `HypervisorFailed`, with nothing touched, when somebody else's domain has the name or the uuid.
 */
async function makeRoom(
  connection: Connection,
  { record, directory }: Pick<Machine, 'record' | 'directory'>,
): Promise<void> {
  const { instanceId, uuid } = record;
  for (const { domain, mark } of await domainsOf(connection, { instanceId, uuid })) {
    if (!isOurs(mark, { instanceId, directory })) throw foreign(instanceId, domain, mark);
    if (domain.id >= 0) {
      throw new DriverError('HypervisorFailed', `cannot start ${instanceId}: domain ${domain.name} runs already`);
    }
    await connection.ask((libvirt) => libvirt.undefine(domain));
  }
}

function foreign(instanceId: string, { name, uuid }: Domain, mark: DomainMark | undefined): DriverError {
  const whose =
    mark === undefined
      ? 'which Berth did not make'
      : `of the Berth that keeps its guests in ${mark.directory.replace(/\/[^/]*$/, '')}`;
  return new DriverError(
    'HypervisorFailed',
    `cannot start ${instanceId}: libvirt has a domain ${name} (${uuid}), ${whose}; it is left alone: rename it ("virsh domrename") or remove it ("virsh undefine"), and try again`,
  );
}

/** What QEMU says last where libvirt, late with the end of the run before, ends the new process instead. */
const endedForTheOneBefore = /terminating on signal 15 from pid \d+ \((libvirtd|virtqemud)\)/;

/** Once the answer is lost, what runs says whether it was carried out. */
async function startDomain(connection: Connection, domain: Domain, tries = 2): Promise<void> {
  try {
    await connection.apart((libvirt) => libvirt.start(domain));
  } catch (error) {
    if (tries > 1 && error instanceof LibvirtError && endedForTheOneBefore.test(error.message))
      return startDomain(connection, domain, tries - 1);
    if (!isLost(error)) throw error;
    const { state } = await connection.ask((libvirt) => libvirt.state(domain));
    if (state === 'shutoff') throw error;
  }
}

async function ensureNetwork(connection: Connection, network: string, what: string): Promise<void> {
  const ensured = await connection.ask((libvirt: Libvirt) => libvirt.ensureNetwork(network));
  if (ensured === undefined) throw new DriverError('HypervisorFailed', `cannot ${what}: ${noNetwork(network)}`);
}

const noNetwork = (network: string): string =>
  `libvirt has no network "${network}"; define it ("virsh net-define /usr/share/libvirt/networks/default.xml" makes "default"), or set LIBVIRT_NETWORK to another, or to "user" for none`;

function checkPaths(directory: string, what: string): void {
  const longest = join(directory, consoleSocket);
  const bytes = Buffer.byteLength(longest);
  if (bytes <= socketPathBytesMax) return;
  throw new DriverError(
    'HypervisorFailed',
    `cannot ${what}: the path of a guest's console, ${longest}, has ${bytes} bytes, and a socket's may have ${socketPathBytesMax}; choose a shorter data directory for the agent`,
  );
}

function startFailure({ record, directory }: Machine, error: unknown): unknown {
  const what = `cannot start ${record.instanceId}`;
  if (error instanceof LibvirtError) {
    if (/No space left/i.test(error.message)) return diskFull(what, directory);
    return new DriverError('HypervisorFailed', `${what}: libvirt refuses: ${error.message}`, error);
  }
  if (error instanceof XmlError)
    return new DriverError('HypervisorFailed', `${what}: ${error.message}; choose another data directory`, error);
  return error;
}

const failed = (what: string, error: unknown): DriverError =>
  new DriverError('HypervisorFailed', `cannot ${what}: ${describeError(error)}`, error);
