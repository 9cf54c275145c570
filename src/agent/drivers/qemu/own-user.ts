// Starts each guest's QEMU as a user of its own: what a guest makes of QEMU then reaches that guest's files and sockets, the images (which it may read), and
// nothing else of this host. Where the host does not allow it, QEMU runs as the agent does, and why is said.

import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Accelerator } from '../../../api/agent-protocol.ts';
import { describeError } from '../../../base/log.ts';
import {
  chooseUser,
  closedFolder,
  giveTo,
  type GuestUsers,
  leaveUser,
  makeOwnFolder,
  usersBelow,
} from '../vm/guest-user.ts';
import type { Machine } from '../vm/hypervisor.ts';
import { qemuFiles, tapDescriptor } from './command-line.ts';

/** The first that anybody may listen on, unless the host's administrator says otherwise (net.ipv4.ip_unprivileged_port_start). */
const freePortFirst = 1024;

export interface OwnUsers {
  /** For a machine that is to be started: its user, with all that it needs given to it. Undefined: QEMU is to run as the agent does. */
  prepare(machine: Machine, accelerator: Accelerator): Promise<OwnUser | undefined>;
  /** The guest is gone. */
  forget(directory: string): void;
  /** Why QEMU runs as the agent does on this host, for people; undefined: it does not, or was told to. */
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
}: {
  readonly users: GuestUsers | undefined;
  readonly root: () => Promise<string>;
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
  return {
    forget: (directory) => void known?.then((all) => all.delete(directory)).catch(() => {}), // nothing was loaded
    async fault() {
      if (users === undefined) return undefined;
      const closed = await closedFolder(await root()).catch(describeError);
      return closed === undefined ? undefined : closedText(closed);
    },
    async prepare({ record, directory, log }, accelerator) {
      const fault =
        users === undefined ? 'so it was configured' : await faultOf(record.image?.path, { directory, accelerator });
      if (users === undefined || fault !== undefined) {
        if (users !== undefined) log.warn("QEMU runs as the agent's user", { reason: fault });
        await leaveUser(directory);
        return undefined;
      }
      const all = await load();
      const before = all.get(directory);
      all.delete(directory);
      const id = chooseUser(directory, { users, before, taken: new Set(all.values()) });
      all.set(directory, id);
      await makeOwnFolder(directory, id);
      const files = [qemuFiles.disk, qemuFiles.console, ...(record.seeded ? [qemuFiles.seed] : [])];
      for (const name of files) await giveTo(join(directory, name), id);
      return { id, groups: accelerator === 'kvm' ? [(await stat('/dev/kvm')).gid] : [] };
    },
  };
}

async function faultOf(
  image: string | undefined,
  { directory, accelerator }: { readonly directory: string; readonly accelerator: Accelerator },
): Promise<string | undefined> {
  const closed =
    (await closedFolder(dirname(directory))) ?? (image === undefined ? undefined : await closedFolder(dirname(image)));
  if (closed !== undefined) return closedText(closed);
  if (image !== undefined && ((await stat(image)).mode & 0o004) === 0) return `${image} is closed to others`;
  const kvmMode = accelerator === 'kvm' ? (await stat('/dev/kvm')).mode : 0o666;
  if ((kvmMode & 0o060) !== 0o060 && (kvmMode & 0o006) !== 0o006)
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
