// Runs each guest's QEMU as its own user: a guest that takes over its QEMU then reaches that guest's files and sockets, may read images, and
// reaches nothing else of this host. Where the host does not allow it, QEMU runs as the agent, and the fingerprint states the reason.

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
import { bootFilesOf } from '../guest-life/boot/boot-files.ts';
import type { Machine } from '../guest-life/hypervisor.ts';
import { qemuFiles, tapDescriptor } from './command-line.ts';

/** The first port that any user may listen on, unless the host's administrator changed it (net.ipv4.ip_unprivileged_port_start). */
const freePortFirst = 1024;

export interface OwnUsers {
  /** Assigns a user to a machine before its start, and gives the user all files that it needs. Undefined: QEMU runs as the agent. */
  prepare(machine: Machine, accelerator: Accelerator): Promise<OwnUser | undefined>;
  /** Gives the user of a running machine a volume. Throws `NotPossible` when the user cannot reach it, or another guest has it. */
  giveVolume(directory: string, volume: GuestVolume): Promise<void>;
  /** Takes back a volume that the machine no longer has open. */
  takeVolume(directory: string, volume: GuestVolume): Promise<void>;
  /** Frees the user of a guest that is being removed. */
  forget(directory: string): Promise<void>;
  /** Loads or removes the rules of the guard. Called once the guests of earlier runs of the agent were found. */
  settle(): Promise<void>;
  /** What guests reach on this host although they should not, and why, for people; undefined: nothing. */
  fault(): Promise<string | undefined>;
}

export interface OwnUser {
  readonly id: number;
  /** Its groups besides its own: the group of /dev/kvm. */
  readonly groups: readonly number[];
}

interface OwnUsersOptions {
  /** Absent: QEMU runs as the agent. */
  readonly users: GuestUsers | undefined;
  readonly root: () => Promise<string>;
  /** Keeps guests that connect by themselves from services of the host. */
  readonly guard: HostGuard | undefined;
  /** New guests have a place in a network of the host, and connect to nothing by themselves. */
  readonly networked: boolean;
  readonly log: Logger;
}

export function createOwnUsers(options: OwnUsersOptions): OwnUsers {
  return new GuestUserBook(options);
}

class GuestUserBook implements OwnUsers {
  readonly #options: OwnUsersOptions;
  /** By the guest's folder. */
  #known: Promise<Map<string, number>> | undefined;

  constructor(options: OwnUsersOptions) {
    this.#options = options;
  }

  async prepare(machine: Machine, accelerator: Accelerator): Promise<OwnUser | undefined> {
    const { record, directory, log } = machine;
    const { users } = this.#options;
    const volumes = record.volumes ?? [];
    const fault = users === undefined ? undefined : await faultOf(record, { directory, accelerator });
    if (users === undefined || fault !== undefined) {
      if (fault !== undefined) log.warn("QEMU runs as the agent's user", { reason: fault });
      await this.#leave(directory, volumes);
      return undefined;
    }
    const all = await this.#load();
    const id = await this.#assign(directory, users);
    // A user must own nothing without a folder of its own, because it may be assigned to another guest.
    const was = await userOfGuest(directory);
    if (was !== undefined && was !== id) await takeAll(directory, { user: was, volumes });
    await makeOwnFolder(directory, id);
    const seed = record.seeded ? [qemuFiles.seed] : [];
    for (const name of [qemuFiles.disk, qemuFiles.console, ...seed, ...bootFilesOf(record)])
      await giveTo(join(directory, name), id);
    if (record.runDisk) await giveVolumeTo({ path: join(directory, qemuFiles.runDisk), readOnly: true }, id);
    for (const volume of volumes) await give(volume, { user: id, all });
    if (record.network === undefined) await this.#closeHostTo(machine);
    return { id, groups: accelerator === 'kvm' ? await groupsForKvm() : [] };
  }

  async giveVolume(directory: string, volume: GuestVolume): Promise<void> {
    const user = await userOfGuest(directory);
    if (user === undefined) return;
    await give(volume, { user, all: await this.#load() });
    const closed = await closedFolder(dirname(volume.path)).catch(() => undefined); // it is not there: QEMU says so
    if (closed === undefined) return;
    throw new DriverError('NotPossible', `cannot give the guest volume "${volume.name}": ${closedText(closed)}`);
  }

  async takeVolume(directory: string, { path }: GuestVolume): Promise<void> {
    const user = await userOfGuest(directory);
    if (user !== undefined) await takeBack(path, user);
  }

  async forget(directory: string): Promise<void> {
    await this.#leave(directory, []);
    await this.#openHost();
  }

  async settle(): Promise<void> {
    const { guard, networked, log } = this.#options;
    if (guard === undefined) return;
    const all = await this.#load();
    const wasClosed = await guard.adopt().catch(() => false); // without nft there is nothing to remove
    // Earlier guests may have no place in the network, even if new guests have one.
    if (all.size > 0 && (wasClosed || !networked)) {
      return this.#closeHost().catch((error: unknown) => log.warn(openText('guests reach', describeError(error))));
    }
    await this.#openHost();
  }

  async fault(): Promise<string | undefined> {
    const { users, root, guard, networked } = this.#options;
    if (users === undefined) return undefined;
    const closed = await closedFolder(await root()).catch(describeError);
    if (closed !== undefined) return `QEMU runs as the agent's user, for ${closedText(closed)}`;
    const open = networked ? undefined : await guard?.fault();
    return open === undefined ? undefined : openText('guests reach', open);
  }

  #load(): Promise<Map<string, number>> {
    this.#known ??= this.#options
      .root()
      .then(usersBelow)
      .catch((error: unknown) => {
        this.#known = undefined;
        throw error;
      });
    return this.#known;
  }

  async #assign(directory: string, users: GuestUsers): Promise<number> {
    const atWork = await usersAtWork();
    const all = await this.#load();
    const before = all.get(directory);
    all.delete(directory);
    const id = chooseUser(directory, { users, before, taken: new Set([...all.values(), ...atWork]) });
    all.set(directory, id);
    return id;
  }

  /** Takes everything back from the guest's user, and only then frees the user. */
  async #leave(directory: string, volumes: readonly GuestVolume[]): Promise<void> {
    const user = await userOfGuest(directory);
    if (user !== undefined) await takeAll(directory, { user, volumes });
    await leaveUser(directory);
    (await this.#known?.catch(() => undefined))?.delete(directory); // if nothing was loaded, there is nothing to forget
  }

  async #closeHost(): Promise<void> {
    const { users, guard } = this.#options;
    const isOther = (user: number): boolean =>
      users === undefined || user < users.first || user >= users.first + users.count;
    await guard?.close([...(await this.#load()).values()].filter(isOther));
  }

  /** Where nftables do not work at all, guests run without the rules, as on a host without users for guests. Elsewhere no guest runs without them. */
  async #closeHostTo({ record, log }: Machine): Promise<void> {
    try {
      await this.#closeHost();
    } catch (error) {
      const open = await this.#options.guard?.fault();
      if (open === undefined) throw rulesDoNotLoad(record.instanceId, error);
      log.warn(openText('the guest reaches', open));
    }
  }

  async #openHost(): Promise<void> {
    const { guard, log } = this.#options;
    if (guard === undefined) return;
    try {
      const all = await this.#load();
      await guard.open(() => all.size === 0);
    } catch (error) {
      log.warn('cannot take away the rules that kept guests from their host', { error: describeError(error) });
    }
  }
}

const openText = (who: string, reason: string): string =>
  `${who} what listens on this host, by 10.0.2.2, and its link-local addresses: ${reason}`;

function rulesDoNotLoad(instanceId: string, error: unknown): DriverError {
  return new DriverError(
    'HypervisorFailed',
    `cannot start ${instanceId}: the rules that keep it from this host and from link-local addresses do not load: ${describeError(error)}; nftables of this host must take them, or set guestUsers: {count: 0} to run guests without`,
  );
}

/** Throws when another guest still has the volume. */
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
  const { disk, console, seed, runDisk, uefiVariables, tpmState } = qemuFiles;
  const own = [disk, console, seed, runDisk, uefiVariables, tpmState].map((name) => join(directory, name));
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

/** The call of QEMU as that user, with only the capability that its ports need, and no way to get more. `tap`: opened before the user changes. */
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

/** Opens the tap as QEMU would (TUNSETIFF: IFF_TAP, IFF_NO_PI, IFF_VNET_HDR), inserts its descriptor, and executes the remaining words. */
const openTap = [
  '$^F = 255;',
  'open(my $tap, "+<", "/dev/net/tun") or die "cannot open /dev/net/tun: $!\\n";',
  'my $name = shift;',
  'ioctl($tap, 0x400454ca, pack("a16sx22", $name, 0x5002)) or die "cannot open the tap $name: $!\\n";',
  'my $number = fileno($tap);',
  `s/${tapDescriptor}/$number/ for @ARGV;`,
  'exec @ARGV or die "cannot start $ARGV[0]: $!\\n";',
].join(' ');
