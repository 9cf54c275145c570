// The agent's own folders: no other user may list or change them. Where guests are run by other users, those may pass through to a file that they
// may read and whose name they were told; nothing more.

import { chmod, mkdir, stat } from 'node:fs/promises';
import type { GuestUsers } from './host/guest-user.ts';

/** Whether guests run as a user other than the agent's: libvirt's user, or with `ownUsers` one for each guest of QEMU. */
export function needsPassage(drivers: readonly string[], { ownUsers }: { readonly ownUsers: boolean }): boolean {
  return drivers.includes('libvirt') || (ownUsers && drivers.includes('qemu'));
}

/** The last of `guestUsers` are for fetches of commits, one for each at once. Small ranges are left to guests. */
const fetchUsers = { count: 4, ofAtLeast: 64 } as const;

/** Only root may run guests as another user. */
export function guestUsersOf({ first, count }: GuestUsers, userId: number): GuestUsers | undefined {
  if (userId !== 0 || count === 0) return undefined;
  return { first, count: count < fetchUsers.ofAtLeast ? count : count - fetchUsers.count };
}

/** Users that git runs as when it fetches a commit; empty: the agent's own. */
export function fetchUsersOf({ first, count }: GuestUsers, userId: number): readonly number[] {
  if (userId !== 0 || count < fetchUsers.ofAtLeast) return [];
  return Array.from({ length: fetchUsers.count }, (_, i) => first + count - 1 - i);
}

/** `passable`: also a folder that is there already is opened for passing through. */
export async function makeFolder(path: string, { passable }: { readonly passable: boolean }): Promise<void> {
  await mkdir(path, { recursive: true, mode: passable ? 0o711 : 0o700 });
  if (!passable) return;
  const { mode } = await stat(path);
  if ((mode & 0o011) !== 0o011) await chmod(path, (mode & 0o7777) | 0o011);
}
