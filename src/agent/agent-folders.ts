// The agent's own folders: nobody else may list or change them. Where guests are run by other users, those may pass through to a file that they
// may read and whose name they were told; nothing more.

import { chmod, mkdir, stat } from 'node:fs/promises';
import type { GuestUsers } from './host/guest-user.ts';

/** Whether guests are run by somebody else than the agent: libvirt's user, or with `ownUsers` one for each guest of QEMU. */
export function needsPassage(drivers: readonly string[], { ownUsers }: { readonly ownUsers: boolean }): boolean {
  return drivers.includes('libvirt') || (ownUsers && drivers.includes('qemu'));
}

/** Only root may run guests as somebody else. */
export function guestUsersOf(configured: GuestUsers, userId: number): GuestUsers | undefined {
  return userId === 0 && configured.count > 0 ? configured : undefined;
}

/** `passable`: also a folder that is there already is opened for passing through. */
export async function makeFolder(path: string, { passable }: { readonly passable: boolean }): Promise<void> {
  await mkdir(path, { recursive: true, mode: passable ? 0o711 : 0o700 });
  if (!passable) return;
  const { mode } = await stat(path);
  if ((mode & 0o011) !== 0o011) await chmod(path, (mode & 0o7777) | 0o011);
}
