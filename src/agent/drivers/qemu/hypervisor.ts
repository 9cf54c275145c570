// QEMU as hypervisor: every machine is a process of its own, which this driver starts, finds and ends itself.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Accelerator } from '../../../api/agent-protocol.ts';
import type { LiveKind } from '../../../api/resources/host.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import type { Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { DriverError } from '../../host/driver-error.ts';
import { type GuestUsers, socketFolder } from '../../host/guest-user.ts';
import { portInUse } from '../../host/port-in-use.ts';
import { isAlive, type ProcessIdentity } from '../../host/processes.ts';
import type { HostGuard } from '../../network/host-guard.ts';
import type { HostNetwork } from '../../network/host-network.ts';
import type { AcceleratorSetting } from '../accelerator-setting.ts';
import type { Fingerprint, GuestSpec, GuestVolume } from '../driver.ts';
import { diskFull } from '../guest-life/disk/disk.ts';
import type { GuestRecord } from '../guest-life/guest-record.ts';
import type { Hypervisor, Machine, MachineSocket, Run, RunEnd } from '../guest-life/hypervisor.ts';
import { consoleSize, punchHole } from '../guest-life/ways-in/console-log.ts';
import { adoptPublished, connectGuest, refusePorts, startPublished } from '../guest-life/ways-in/guest-link.ts';
import { assertBootFiles } from '../guest-life/boot/boot-files.ts';
import { qemuArguments, qemuFiles, volumeBus } from './command-line.ts';
import { createHostLook, type HostLook, type HostLookOptions } from './host-look.ts';
import { moveSocket } from './live/move-sockets.ts';
import { asOwnUser, createOwnUsers, type OwnUsers } from './own-user.ts';
import { findGuestProcess, isGuestProcess, killGuestProcess } from './processes.ts';
import { adoptRun, launchRun } from './run.ts';
import { withTpm } from './tpm.ts';
import { doesNotEnd, killGraceMs, lastWords, type RunOptions } from './supervise-qemu.ts';

export interface QemuOptions {
  readonly clock: Clock;
  readonly prng: Prng;
  /** Default `auto`: KVM where a probe guest ran under it, else TCG. */
  readonly accelerator?: AcceleratorSetting;
  readonly qemuProgram?: string;
  /** Default /dev/kvm. */
  readonly kvmDevice?: string;
  readonly probeTimeoutMs?: number;
  /** What the KVM probe boots. Default: a boot sector. */
  readonly probeImage?: HostLookOptions['probeImage'];
  readonly qemuImg: string;
  /** The network of the host, which guests are connected to. Default: each guest has a user network of QEMU of its own. */
  readonly network?: HostNetwork;
  readonly bindAddress?: string;
  readonly detachPatienceMs?: number;
  /** Each guest's QEMU runs as one of these users. Default: as the agent. */
  readonly users?: GuestUsers;
  /** The guard for those users. Absent: their guests reach what listens on their host. */
  readonly hostGuard?: HostGuard;
  readonly log: Logger;
  readonly root: HostLookOptions['root'];
}

const sockets = {
  console: qemuFiles.consoleSocket,
  vnc: qemuFiles.vnc,
  guestAgent: qemuFiles.guestAgent,
  runner: qemuFiles.runner,
  runnerSerial: qemuFiles.runnerSerial,
} as const;

const stderrBytesMax = 256 * 1024;
const stderrBytesKept = 16 * 1024;

export function createQemu(options: QemuOptions): Hypervisor {
  return new QemuHypervisor(options);
}

class QemuHypervisor implements Hypervisor {
  readonly name = 'qemu';
  readonly volumes = true;
  readonly measures = true;
  readonly suspends = true;
  readonly saves = true;
  readonly runs = true;
  readonly migrates = true;
  readonly live: NonNullable<Hypervisor['live']> = {
    kind: () => this.#liveKind(),
    // One socket for all disks: the client names the disk.
    socketOf: async ({ directory }, name) => join(await socketFolder(directory), moveSocket(name)),
  };
  readonly network?: HostNetwork;
  readonly fallBack?: NonNullable<HostLook['fallBack']>;
  readonly #options: QemuOptions;
  readonly #clock: Clock;
  readonly #bindAddress: string;
  readonly #program: string;
  readonly #hostLook: HostLook;
  readonly #ownUsers: OwnUsers;
  /** By directory: the length of the standard error when its start was last dropped. */
  readonly #trimmedAtBytes = new Map<string, number>();

  constructor(options: QemuOptions) {
    const { clock, root, network, users, hostGuard: guard, log } = options;
    this.#options = options;
    this.#clock = clock;
    this.#bindAddress = options.bindAddress ?? '127.0.0.1';
    this.#program = options.qemuProgram ?? 'qemu-system-x86_64';
    this.#ownUsers = createOwnUsers({ users, root, guard, networked: network !== undefined, log });
    this.#hostLook = createHostLook({
      clock,
      qemu: this.#program,
      qemuImg: options.qemuImg,
      root,
      accelerator: options.accelerator ?? 'auto',
      kvmDevice: options.kvmDevice,
      probeTimeoutMs: options.probeTimeoutMs,
      probeImage: options.probeImage,
    });
    if (network !== undefined) this.network = network;
    if (this.#hostLook.fallBack !== undefined) this.fallBack = this.#hostLook.fallBack;
  }

  async fingerprint(): Promise<Fingerprint> {
    const seen = await this.#hostLook.fingerprint();
    const fault = seen.available ? await this.network?.fault() : undefined;
    if (fault !== undefined) return { available: false, reason: fault };
    const reason = await this.#ownUsers.fault();
    if (reason === undefined || !seen.available) return seen;
    return { ...seen, reason: seen.reason === undefined ? reason : `${seen.reason}; ${reason}` };
  }

  async #liveKind(): Promise<LiveKind> {
    const { version = 'unknown', accelerator } = await this.#hostLook.fingerprint();
    const cpu = accelerator === 'kvm' ? `host ${await processorDigest()}` : 'max (TCG)';
    return { machine: `pc of QEMU ${version}`, cpu, network: this.network?.kind ?? 'user' };
  }

  chosenAccelerator(): Promise<Accelerator> {
    return this.#hostLook.chosenAccelerator();
  }

  changes(): number {
    return this.#hostLook.changes();
  }

  refuse(spec: GuestSpec): DriverError | undefined {
    return refusePorts(this.network, spec);
  }

  settle(): Promise<void> {
    return this.#ownUsers.settle();
  }

  close(): void {
    this.#options.hostGuard?.stop();
  }

  async start(
    machine: Machine,
    { accelerator, bindAddress, incoming = false, onProcess }: Parameters<Hypervisor['start']>[1],
  ): Promise<Run> {
    const { record } = machine;
    await assertBootFiles(machine.directory, record);
    await connectGuest(this.network, machine);
    const user = await this.#ownUsers.prepare(machine, accelerator);
    const ownUser = user !== undefined;
    const plain = {
      program: this.#program,
      arguments: qemuArguments(record, { accelerator, bindAddress, ownUser, incoming }),
    };
    const call = record.tpm ? withTpm(plain) : plain;
    const hostPorts = publishedPorts(record) ?? [];
    const tap = record.network === undefined ? {} : { tap: record.network.tap };
    return startPublished(machine, { clock: this.#clock, bindAddress }, () =>
      launchRun(this.#runOptions(machine), {
        ...(user === undefined ? call : asOwnUser(call, { user, hostPorts, ...tap })),
        onProcess,
      }),
    );
  }

  async find(machine: Machine, thorough: boolean): Promise<Run | null> {
    const { record, directory } = machine;
    const hint = record.process;
    const known = hint !== undefined && (await isGuestProcess(hint, { directory, uuid: record.uuid })) ? hint : null;
    const found = known === null && thorough ? await findGuestProcess(directory, record.uuid) : known;
    if (found === null) return null;
    const publishing = { clock: this.#clock, bindAddress: this.#bindAddress };
    return adoptPublished(machine, publishing, adoptRun(this.#runOptions(machine), found));
  }

  #runOptions({ record, directory, log }: Machine): RunOptions {
    const { prng, detachPatienceMs } = this.#options;
    return {
      directory,
      uuid: record.uuid,
      clock: this.#clock,
      prng,
      log,
      publishedPorts: publishedPorts(record),
      volumeBus: volumeBus(record),
      ...(record.network === undefined ? {} : { tap: record.network.tap }),
      giveVolume: (volume) => this.#ownUsers.giveVolume(directory, volume),
      ...(detachPatienceMs === undefined ? {} : { detachPatienceMs }),
    };
  }

  async running({ directory }: { readonly directory: string }): Promise<string | undefined> {
    const found = await findGuestProcess(directory);
    return found === null ? undefined : `QEMU (pid ${found.pid}) runs it`;
  }

  async purge({ directory, uuid }: { readonly directory: string; readonly uuid?: string }): Promise<void> {
    const left = await findGuestProcess(directory, uuid);
    this.#trimmedAtBytes.delete(directory);
    if (left !== null) await this.#kill(left, directory);
    await this.#ownUsers.forget(directory);
  }

  /** Resolves when the process is gone. */
  async #kill(guest: ProcessIdentity, directory: string): Promise<void> {
    await killGuestProcess(guest, { directory });
    const untilMs = this.#clock.monotonicMs() + killGraceMs;
    while (await isAlive(guest)) {
      if (this.#clock.monotonicMs() > untilMs) throw doesNotEnd(guest, directory);
      await sleep(this.#clock, 20);
    }
  }

  takeVolume({ directory, volume }: { readonly directory: string; readonly volume: GuestVolume }): Promise<void> {
    return this.#ownUsers.takeVolume(directory, volume);
  }

  async startError({ record, directory }: Machine, end: RunEnd, bindAddress: string): Promise<DriverError> {
    const { instanceId, ports } = record;
    const words = await lastWords(directory);
    const forward = /host forwarding rule '(tcp|udp):[^']*?:(\d+)-/.exec(words);
    const port = ports.find((each) => each.protocol === forward?.[1] && String(each.hostPort) === forward?.[2]);
    if (port !== undefined) return portInUse(instanceId, port, bindAddress);
    if (/No space left/i.test(words)) return diskFull(`cannot start ${instanceId}`, directory);
    return new DriverError('HypervisorFailed', `cannot start ${instanceId}: ${end.detail}: ${words}`);
  }

  lastWords(directory: string): Promise<string> {
    return lastWords(directory);
  }

  async consoleWriter(_machine: Machine, run: Run): Promise<Run['process']> {
    return run.process;
  }

  async socketOf({ directory }: Machine, socket: MachineSocket): Promise<string> {
    return join(directory, await socketFolder(directory), sockets[socket]);
  }

  async trimLogs(directory: string): Promise<void> {
    const path = join(directory, qemuFiles.stderr);
    const sizeBytes = await consoleSize(path);
    if (sizeBytes - (this.#trimmedAtBytes.get(directory) ?? 0) <= stderrBytesMax) return;
    this.#trimmedAtBytes.set(directory, sizeBytes);
    await punchHole(this.#clock, path, sizeBytes - stderrBytesKept);
  }
}

/** Equal for CPUs with the same features: under KVM guests see the CPU of their host. */
async function processorDigest(): Promise<string> {
  const [first = ''] = (await readFile('/proc/cpuinfo', 'utf8')).split('\n\n', 1);
  const said = first.split('\n').filter((line) => /^(vendor_id|cpu family|model|stepping|flags)\b/.test(line));
  return createHash('sha256').update(said.join('\n')).digest('hex').slice(0, 16);
}

/** The ports that QEMU itself publishes; undefined: the guest is not on QEMU's user network. */
function publishedPorts({ network, ports }: GuestRecord): readonly number[] | undefined {
  return network === undefined ? ports.map(({ hostPort }) => hostPort) : undefined;
}
