// Folders of the host for containers. After a path was checked, only the administrator of the host can make it lead elsewhere: no part of it
// is a symbolic link, no other user can replace a part, and no other guest may write to a folder above it.

import { lstat } from 'node:fs/promises';
import { type HostMount, isWithin } from '../../../../api/resources/mount.ts';
import { DriverError } from '../../../host/driver-error.ts';
import type { GuestContainer } from '../../driver.ts';

/** For the engine: a mount of a container in its configuration. */
export const mountConfig = ({ hostPath, path, readOnly = false }: HostMount) => ({
  Type: 'bind',
  Source: hostPath,
  Target: path,
  ReadOnly: readOnly,
  BindOptions: { Propagation: 'rprivate' },
});

/** Kept with each container, so that later ones are compared with it. */
export const mountsLabel = 'berth.mounts';

export function mountsText(mounts: readonly HostMount[]): string {
  return JSON.stringify(mounts.map(({ hostPath, readOnly }) => [hostPath, readOnly === true ? 'r' : 'w']));
}

interface HeldPath {
  readonly hostPath: string;
  readonly writable: boolean;
}

/** What the label of a container of another guest says; a label that is none of ours says nothing. */
export function mountsOfLabel(text: string | undefined): HeldPath[] {
  if (text === undefined) return [];
  try {
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value)) return [];
    return value.flatMap((each: unknown) =>
      Array.isArray(each) && typeof each[0] === 'string' ? [{ hostPath: each[0], writable: each[1] === 'w' }] : [],
    );
  } catch {
    return []; // not written by this driver
  }
}

/** Throws `NotPossible`. `others`: the mounts of other guests of this host; `directory`: of the guest, which is the agent's own. */
export async function assertMountable(
  containers: readonly GuestContainer[],
  others: readonly HeldPath[],
  directory: string,
): Promise<void> {
  const { uid } = await lstat(directory);
  for (const { name, mounts = [] } of containers) {
    for (const { hostPath, ...rest } of mounts) {
      if (hostPath === undefined) continue; // a volume
      const mount = { ...rest, hostPath };
      const what = `container "${name}" cannot have ${mount.hostPath} of the host`;
      await assertSteady(mount.hostPath, what, uid);
      assertApart(mount, others, what);
    }
  }
}

async function assertSteady(path: string, what: string, userId: number): Promise<void> {
  const parts = path.split('/').slice(1);
  let above: { readonly path: string; readonly open: boolean; readonly sticky: boolean } | undefined;
  for (let count = 0; count <= parts.length; count++) {
    const here = `/${parts.slice(0, count).join('/')}`;
    const seen = await lstat(here).catch((error: unknown) => {
      throw new DriverError('NotPossible', `${what}: ${here} does not exist there, or cannot be read`, error);
    });
    const refuse = (why: string): never => {
      throw new DriverError('NotPossible', `${what}: ${why}`);
    };
    if (seen.isSymbolicLink()) refuse(`${here} is a symbolic link; name what it leads to`);
    const owned = seen.uid === 0 || seen.uid === userId;
    // In a folder like /tmp only the owner of an entry can replace it.
    if (above?.open && !(above.sticky && owned))
      refuse(`others can replace ${here}, because they can write to ${above.path}`);
    if (count === parts.length) {
      if (!seen.isDirectory() && !seen.isFile()) refuse(`${here} is neither a folder nor a file`);
      return;
    }
    if (!seen.isDirectory()) refuse(`${here} is no folder`);
    if (!owned) refuse(`${here} belongs to user ${seen.uid}, who can replace what is in it`);
    above = { path: here, open: (seen.mode & 0o022) !== 0, sticky: (seen.mode & 0o1000) !== 0 };
  }
}

function assertApart({ hostPath, readOnly = false }: HostMount, others: readonly HeldPath[], what: string): void {
  for (const other of others) {
    if (other.hostPath === hostPath) continue;
    if (other.writable && isWithin(hostPath, other.hostPath))
      throw new DriverError(
        'NotPossible',
        `${what}: another guest can write to ${other.hostPath}, and replace what is in it`,
      );
    if (!readOnly && isWithin(other.hostPath, hostPath))
      throw new DriverError('NotPossible', `${what} to write: another guest has ${other.hostPath}, which is in it`);
  }
}
