// QEMU as hypervisor: every machine a process of its own, started, found and ended by this driver itself.

import { join } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import { sleep } from '../../../base/clock.ts';
import type { Prng } from '../../../base/prng.ts';
import type { HostGuard } from '../../network/host-guard.ts';
import type { HostNetwork } from '../../network/host-network.ts';
import type { Logger } from '../../../base/log.ts';
import type { AcceleratorSetting } from '../accelerator-setting.ts';
import { DriverError } from '../../host/driver-error.ts';
import { consoleSize, punchHole } from '../guest-life/ways-in/console-log.ts';
import { diskFull } from '../guest-life/disk/disk.ts';
import { adoptPublished, connectGuest, hostNetworkOf, startPublished } from '../guest-life/ways-in/guest-link.ts';
import { type GuestUsers, socketFolder } from '../../host/guest-user.ts';
import type { Hypervisor, Machine } from '../guest-life/hypervisor.ts';
import { portInUse } from '../../host/port-in-use.ts';
import { qemuArguments, qemuFiles } from './command-line.ts';
import { createHostLook, type HostLookOptions } from './host-look.ts';
import { asOwnUser, createOwnUsers } from './own-user.ts';
import { isAlive } from '../../host/processes.ts';
import { findGuestProcess, isGuestProcess, killGuestProcess } from './processes.ts';
import type { GuestRecord } from '../guest-life/guest-record.ts';
import { adoptRun, doesNotEnd, killGraceMs, lastWords, launchRun, type RunOptions } from './run.ts';

export interface QemuOptions {
  readonly clock: Clock;
  readonly prng: Prng;
  /** Default `auto`: KVM where a probe guest ran under it, else TCG. */
  readonly accelerator?: AcceleratorSetting;
  readonly qemuProgram?: string;
  /** Default /dev/kvm. */
  readonly kvmDevice?: string;
  readonly probeTimeoutMs?: number;
  /** KVM is tried with it. Default: with a boot sector. */
  readonly probeImage?: HostLookOptions['probeImage'];
  readonly qemuImg: string;
  /** Where guests are connected. Default: each is alone behind QEMU's own user network. */
  readonly network?: HostNetwork;
  readonly bindAddress?: string;
  readonly detachPatienceMs?: number;
  /** Each guest's QEMU runs as one of them. Default: as the agent. */
  readonly users?: GuestUsers;
  /** Of those users. Absent: they reach what listens on their host. */
  readonly hostGuard?: HostGuard;
  readonly log: Logger;
  readonly root: HostLookOptions['root'];
}

const sockets = { console: qemuFiles.consoleSocket, vnc: qemuFiles.vnc, guestAgent: qemuFiles.guestAgent } as const;

const stderrBytesMax = 256 * 1024;
const stderrBytesKept = 16 * 1024;

export function createQemu(options: QemuOptions): Hypervisor {
  const { clock, prng, qemuImg, root, network } = options;
  const bindAddress = options.bindAddress ?? '127.0.0.1';
  const program = options.qemuProgram ?? 'qemu-system-x86_64';
  /** By directory: how long its standard error was when its start was last dropped. */
  const trimmedAtBytes = new Map<string, number>();
  const runOptions = ({ record, directory, log }: Machine): RunOptions => ({
    directory,
    uuid: record.uuid,
    clock,
    prng,
    log,
    publishedPorts: publishedPorts(record),
    giveVolume: (volume) => ownUsers.giveVolume(directory, volume),
    ...(options.detachPatienceMs === undefined ? {} : { detachPatienceMs: options.detachPatienceMs }),
  });
  const { users, hostGuard: guard, log } = options;
  const ownUsers = createOwnUsers({ users, root, guard, networked: network !== undefined, log });
  const hostLook = createHostLook({
    clock,
    qemu: program,
    qemuImg,
    root,
    accelerator: options.accelerator ?? 'auto',
    kvmDevice: options.kvmDevice,
    probeTimeoutMs: options.probeTimeoutMs,
    probeImage: options.probeImage,
  });
  return {
    name: 'qemu',
    volumes: true,
    suspends: true,
    ...hostLook,
    async fingerprint() {
      const seen = await hostLook.fingerprint();
      const fault = seen.available ? await network?.fault() : undefined;
      if (fault !== undefined) return { available: false, reason: fault };
      const reason = await ownUsers.fault();
      if (reason === undefined || !seen.available) return seen;
      return { ...seen, reason: seen.reason === undefined ? reason : `${seen.reason}; ${reason}` };
    },
    ...hostNetworkOf(network),
    settle: () => ownUsers.settle(),
    close: () => guard?.stop(),
    async start(machine, { accelerator, bindAddress, onProcess }) {
      const { record } = machine;
      await connectGuest(network, machine);
      const user = await ownUsers.prepare(machine, accelerator);
      const ownUser = user !== undefined;
      const call = { program, arguments: qemuArguments(record, { accelerator, bindAddress, ownUser }) };
      const hostPorts = publishedPorts(record) ?? [];
      const tap = record.network === undefined ? {} : { tap: record.network.tap };
      return startPublished(machine, { clock, bindAddress }, () =>
        launchRun(runOptions(machine), {
          ...(user === undefined ? call : asOwnUser(call, { user, hostPorts, ...tap })),
          onProcess,
        }),
      );
    },
    async find(machine, thorough) {
      const { record, directory } = machine;
      const hint = record.process;
      const known = hint !== undefined && (await isGuestProcess(hint, { directory, uuid: record.uuid })) ? hint : null;
      const found = known === null && thorough ? await findGuestProcess(directory, record.uuid) : known;
      if (found === null) return null;
      return adoptPublished(machine, { clock, bindAddress }, adoptRun(runOptions(machine), found));
    },
    async running({ directory }) {
      const found = await findGuestProcess(directory);
      return found === null ? undefined : `QEMU (pid ${found.pid}) runs it`;
    },
    async purge({ directory, uuid }) {
      const left = await findGuestProcess(directory, uuid);
      trimmedAtBytes.delete(directory);
      if (left !== null) {
        await killGuestProcess(left, { directory });
        const untilMs = clock.monotonicMs() + killGraceMs;
        while (await isAlive(left)) {
          if (clock.monotonicMs() > untilMs) throw doesNotEnd(left, directory);
          await sleep(clock, 20);
        }
      }
      await ownUsers.forget(directory);
    },
    takeVolume: ({ directory, volume }) => ownUsers.takeVolume(directory, volume),
    async startError({ record, directory }, end, bindAddress) {
      const { instanceId, ports } = record;
      const words = await lastWords(directory);
      const forward = /host forwarding rule '(tcp|udp):[^']*?:(\d+)-/.exec(words);
      const port = ports.find((each) => each.protocol === forward?.[1] && String(each.hostPort) === forward?.[2]);
      if (port !== undefined) return portInUse(instanceId, port, bindAddress);
      if (/No space left/i.test(words)) return diskFull(`cannot start ${instanceId}`, directory);
      return new DriverError('HypervisorFailed', `cannot start ${instanceId}: ${end.detail}: ${words}`);
    },
    lastWords,
    consoleWriter: async (_machine, run) => run.process,
    socketOf: async ({ directory }, socket) => join(directory, await socketFolder(directory), sockets[socket]),
    async trimLogs(directory) {
      const path = join(directory, qemuFiles.stderr);
      const sizeBytes = await consoleSize(path);
      if (sizeBytes - (trimmedAtBytes.get(directory) ?? 0) <= stderrBytesMax) return;
      trimmedAtBytes.set(directory, sizeBytes);
      await punchHole(clock, path, sizeBytes - stderrBytesKept);
    },
  };
}

/** By QEMU itself; undefined: the guest is on another network than the user's. */
function publishedPorts({ network, ports }: GuestRecord): readonly number[] | undefined {
  return network === undefined ? ports.map(({ hostPort }) => hostPort) : undefined;
}
