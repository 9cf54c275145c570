// Starts each guest's QEMU as a user of its own: what a guest makes of QEMU then reaches that guest's files and sockets, the images (which it may read), and
// nothing else of this host. Where the host does not allow it, QEMU runs as the agent does, and why is said.

import { stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Accelerator } from '../../../api/agent-protocol.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { HostGuard } from '../../network/host-guard.ts';
import type { GuestVolume } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { GuestRecord } from '../guest-life/guest-record.ts';
import {
  chooseUser,
  closedFolder,
  giveTo,
  giveVolumeTo,
  type GuestUsers,
  holderOf,
  leaveUser,
  makeOwnFolder,
  takeBack,
  userOfGuest,
  usersAtWork,
  usersBelow,
} from '../../host/guest-user.ts';
import type { Machine } from '../guest-life/hypervisor.ts';
import { qemuFiles, tapDescriptor } from './command-line.ts';

/** The first that anybody may listen on, unless the host's administrator says otherwise (net.ipv4.ip_unprivileged_port_start). */
const freePortFirst = 1024;

export interface OwnUsers {
  /** For a machine that is to be started: its user, with all that it needs given to it. Undefined: QEMU is to run as the agent does. */
  prepare(machine: Machine, accelerator: Accelerator): Promise<OwnUser | undefined>;
  /** For one that runs: a volume that it is about to be given. Throws `NotPossible` when its user cannot get there, or another guest has it. */
  giveVolume(directory: string, volume: GuestVolume): Promise<void>;
  /** A volume that it has not open, and is not to have any more. */
  takeVolume(directory: string, volume: GuestVolume): Promise<void>;
  /** The guest is gone, and its files are to go: its user is free for another. */
  forget(directory: string): Promise<void>;
  /** Once the guests of earlier runs were found: what they are kept from is as it should be. */
  settle(): Promise<void>;
  /** What guests have of this host that they should not, and why, for people; undefined: nothing that the agent was not told to. */
  fault(): Promise<string | undefined>;
}

export interface OwnUser {
  readonly id: number;
  /** Besides its own: whose /dev/kvm is. */
  readonly groups: readonly number[];
}

/** `users` absent: QEMU runs as the agent does. */
export function createOwnUsers({
  users,
  root,
  guard,
  networked,
  log,
}: {
  readonly users: GuestUsers | undefined;
  readonly root: () => Promise<string>;
  /** Keeps them from what listens on the host, where they connect to anything by themselves. */
  readonly guard: HostGuard | undefined;
  /** New guests have a place in a network of the host's, and connect to nothing by themselves. */
  readonly networked: boolean;
  readonly log: Logger;
}): OwnUsers {
  /** By the guest's folder. */
  let known: Promise<Map<string, number>> | undefined;
  const load = (): Promise<Map<string, number>> => {
    known ??= root()
      .then(usersBelow)
      .catch((error: unknown) => {
        known = undefined;
        throw error;
      });
    return known;
  };
  /** Nothing is its user's any more, and only then that is nobody's. */
  const leave = async (directory: string, volumes: readonly GuestVolume[]): Promise<void> => {
    const user = await userOfGuest(directory);
    if (user !== undefined) await takeAll(directory, { user, volumes });
    await leaveUser(directory);
    (await known?.catch(() => undefined))?.delete(directory); // nothing was loaded: nothing to forget
  };
  const closeHost = async (): Promise<void> => {
    const isOther = (user: number): boolean =>
      users === undefined || user < users.first || user >= users.first + users.count;
    await guard?.close([...(await load()).values()].filter(isOther));
  };
  /** Where nftables do not work at all, guests run all the same, as on a host that cannot give them users. Where they do, no guest runs without its rules. */
  const closeHostTo = async ({ record, log: guestLog }: Pick<Machine, 'record' | 'log'>): Promise<void> => {
    try {
      await closeHost();
    } catch (error) {
      const open = await guard?.fault();
      if (open === undefined) throw rulesDoNotLoad(record.instanceId, error);
      guestLog.warn(openText('the guest reaches', open));
    }
  };
  const openHost = async (): Promise<void> => {
    if (guard === undefined) return;
    try {
      const all = await load();
      await guard.open(() => all.size === 0);
    } catch (error) {
      log.warn('cannot take away the rules that kept guests from their host', { error: describeError(error) });
    }
  };
  return {
    async forget(directory) {
      await leave(directory, []);
      await openHost();
    },
    async settle() {
      if (guard === undefined) return;
      const all = await load();
      const wasClosed = await guard.adopt().catch(() => false); // without nft there is nothing to take away
      // Where new guests have a place in a network, those of before may not.
      if (all.size > 0 && (wasClosed || !networked)) {
        return closeHost().catch((error: unknown) => log.warn(openText('guests reach', describeError(error))));
      }
      await openHost();
    },
    async fault() {
      if (users === undefined) return undefined;
      const closed = await closedFolder(await root()).catch(describeError);
      if (closed !== undefined) return `QEMU runs as the agent's user, for ${closedText(closed)}`;
      const open = networked ? undefined : await guard?.fault();
      return open === undefined ? undefined : openText('guests reach', open);
    },
    async giveVolume(directory, volume) {
      const user = await userOfGuest(directory);
      if (user === undefined) return;
      await give(volume, { user, all: await load() });
      const closed = await closedFolder(dirname(volume.path)).catch(() => undefined); // it is not there: QEMU says so
      if (closed === undefined) return;
      throw new DriverError('NotPossible', `cannot give the guest volume "${volume.name}": ${closedText(closed)}`);
    },
    async takeVolume(directory, { path }) {
      const user = await userOfGuest(directory);
      if (user !== undefined) await takeBack(path, user);
    },
    async prepare({ record, directory, log }, accelerator) {
      const volumes = record.volumes ?? [];
      const fault = users === undefined ? undefined : await faultOf(record, { directory, accelerator });
      if (users === undefined || fault !== undefined) {
        if (fault !== undefined) log.warn("QEMU runs as the agent's user", { reason: fault });
        await leave(directory, volumes);
        return undefined;
      }
      const atWork = await usersAtWork();
      const all = await load();
      const before = all.get(directory);
      all.delete(directory);
      const id = chooseUser(directory, { users, before, taken: new Set([...all.values(), ...atWork]) });
      all.set(directory, id);
      // Nothing is ever somebody's for whom no folder stands: another guest may be given that user.
      const was = await userOfGuest(directory);
      if (was !== undefined && was !== id) await takeAll(directory, { user: was, volumes });
      await makeOwnFolder(directory, id);
      for (const name of [qemuFiles.disk, qemuFiles.console, ...(record.seeded ? [qemuFiles.seed] : [])])
        await giveTo(join(directory, name), id);
      for (const volume of volumes) await give(volume, { user: id, all });
      if (record.network === undefined) await closeHostTo({ record, log });
      return { id, groups: accelerator === 'kvm' ? await groupsForKvm() : [] };
    },
  };
}

const openText = (who: string, reason: string): string =>
  `${who} what listens on this host, by 10.0.2.2, and its link-local addresses: ${reason}`;

function rulesDoNotLoad(instanceId: string, error: unknown): DriverError {
  return new DriverError(
    'HypervisorFailed',
    `cannot start ${instanceId}: the rules that keep it from this host and from link-local addresses do not load: ${describeError(error)}; nftables of this host must take them, or set guestUsers: {count: 0} to run guests without`,
  );
}

/** One that another guest was given, and has not been taken from it, stays where it is. */
async function give(
  volume: GuestVolume,
  { user, all }: { readonly user: number; readonly all: ReadonlyMap<string, number> },
): Promise<void> {
  const holder = await holderOf(volume.path);
  const other = holder === user ? undefined : [...all].find(([, each]) => each === holder)?.[0];
  if (other !== undefined)
    throw new DriverError(
      'NotPossible',
      `cannot give the guest volume "${volume.name}": ${basename(other)} has it; take it from that one first`,
    );
  await giveVolumeTo(volume, user);
}

async function takeAll(
  directory: string,
  { user, volumes }: { readonly user: number; readonly volumes: readonly GuestVolume[] },
): Promise<void> {
  const own = [qemuFiles.disk, qemuFiles.console, qemuFiles.seed].map((name) => join(directory, name));
  for (const path of [...own, ...volumes.map((volume) => volume.path)]) await takeBack(path, user);
}

const everybody = 0o006;
const group = 0o060;

async function groupsForKvm(): Promise<readonly number[]> {
  const { mode, gid } = await stat('/dev/kvm');
  return (mode & everybody) === everybody ? [] : [gid];
}

async function faultOf(
  { image, volumes = [] }: Pick<GuestRecord, 'image' | 'volumes'>,
  { directory, accelerator }: { readonly directory: string; readonly accelerator: Accelerator },
): Promise<string | undefined> {
  const closed =
    (await closedFolder(dirname(directory))) ??
    (image === undefined ? undefined : await closedFolder(dirname(image.path)));
  if (closed !== undefined) return closedText(closed);
  for (const { path } of volumes) {
    const closedVolumes = await closedFolder(dirname(dirname(path))).catch(() => undefined); // not there: QEMU says so
    if (closedVolumes !== undefined) return closedText(closedVolumes);
  }
  if (image !== undefined && ((await stat(image.path)).mode & 0o004) === 0) return `${image.path} is closed to others`;
  const kvmMode = accelerator === 'kvm' ? (await stat('/dev/kvm')).mode : everybody;
  if ((kvmMode & group) !== group && (kvmMode & everybody) !== everybody)
    return '/dev/kvm is closed to its group: chmod 660 /dev/kvm';
  return undefined;
}

const closedText = (folder: string): string => `${folder} is closed to others: chmod o+x ${folder}`;

interface QemuCall {
  readonly program: string;
  readonly arguments: readonly string[];
}

/** The call of QEMU as that user, with no capability but what its ports need and no way to get any. `tap`: opened before, for it may not. */
export function asOwnUser(
  { program, arguments: words }: QemuCall,
  { user, tap, hostPorts }: { readonly user: OwnUser; readonly tap?: string; readonly hostPorts: readonly number[] },
): QemuCall {
  const capabilities = hostPorts.some((port) => port < freePortFirst) ? '-all,+net_bind_service' : '-all';
  const lessened = [
    ...['--reuid', String(user.id), '--regid', String(user.id)],
    ...(user.groups.length === 0 ? ['--clear-groups'] : ['--groups', user.groups.join(',')]),
    ...[`--inh-caps=${capabilities}`, `--ambient-caps=${capabilities}`, `--bounding-set=${capabilities}`],
    ...['--no-new-privs', '--', program, ...words],
  ];
  if (tap === undefined) return { program: 'setpriv', arguments: lessened };
  return { program: 'perl', arguments: ['-e', openTap, tap, 'setpriv', ...lessened] };
}

/** Opens the tap (TUNSETIFF: IFF_TAP, IFF_NO_PI, IFF_VNET_HDR, as QEMU would), puts its descriptor where it belongs, and becomes the rest. */
const openTap = [
  '$^F = 255;',
  'open(my $tap, "+<", "/dev/net/tun") or die "cannot open /dev/net/tun: $!\\n";',
  'my $name = shift;',
  'ioctl($tap, 0x400454ca, pack("a16sx22", $name, 0x5002)) or die "cannot open the tap $name: $!\\n";',
  'my $number = fileno($tap);',
  `s/${tapDescriptor}/$number/ for @ARGV;`,
  'exec @ARGV or die "cannot start $ARGV[0]: $!\\n";',
].join(' ');
