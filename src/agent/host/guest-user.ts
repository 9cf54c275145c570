// The user that a guest's hypervisor runs as where each guest has one of its own. Which it is stands in the guest's folder, as the owner of the
// folder below it that this user may write to; all else of the guest is files that were given to it. The guest's record and folder stay root's.

import { chmod, chown, constants, type FileHandle, lstat, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';

/** Ids of users and groups that nothing else on this host has. */
export interface GuestUsers {
  readonly first: number;
  readonly count: number;
}

/** Sockets are made in it. */
export const ownFolder = 'run';

/** Undefined: the guest's hypervisor runs, or ran last, as the agent's own user. */
export async function userOfGuest(directory: string): Promise<number | undefined> {
  const found = await lstat(join(directory, ownFolder)).catch(() => undefined);
  return found?.isDirectory() === true && found.uid !== 0 ? found.uid : undefined;
}

/** Of the guest's folder: where its hypervisor makes its sockets. */
export async function socketFolder(directory: string): Promise<string> {
  return (await userOfGuest(directory)) === undefined ? '' : ownFolder;
}

/** The same as `before` where that can be. Throws `RangeError` when all are taken. */
export function chooseUser(
  directory: string,
  {
    users,
    before,
    taken,
  }: { readonly users: GuestUsers; readonly before: number | undefined; readonly taken: ReadonlySet<number> },
): number {
  const isAmong = (user: number): boolean => user >= users.first && user < users.first + users.count;
  if (before !== undefined && isAmong(before) && !taken.has(before)) return before;
  // Where it begins to look depends on the guest alone, so that two agents of one host rarely meet.
  const start = createHash('sha256').update(directory).digest().readUInt32BE() % users.count;
  for (let i = 0; i < users.count; i++) {
    const user = users.first + ((start + i) % users.count);
    if (!taken.has(user)) return user;
  }
  throw new RangeError(`all ${users.count} of guestUsers are taken; give it a larger count`);
}

/** For a guest that does not run: its folder for sockets, empty. The guest's own folder is opened for passing through. */
export async function makeOwnFolder(directory: string, user: number): Promise<void> {
  const folder = join(directory, ownFolder);
  // Never without an owner between two moments: whose the guest's files are stands there.
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chown(folder, user, user);
  await chmod(folder, 0o700);
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true });
  await chmod(directory, 0o711);
}

/** For a guest that does not run, and whose user nothing belongs to any more. */
export async function leaveUser(directory: string): Promise<void> {
  await rm(join(directory, ownFolder), { recursive: true, force: true });
}

/** Who has which of the guests' users below `root`. */
export async function usersBelow(root: string): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const name of await readdir(root)) {
    const user = await userOfGuest(join(root, name));
    if (user !== undefined) found.set(join(root, name), user);
  }
  return found;
}

/** The users as which anything runs on this host now, also when another process started it: another agent may have guests, too. */
export async function usersAtWork(): Promise<Set<number>> {
  const found = new Set<number>();
  for (const name of await readdir('/proc')) {
    if (!/^[0-9]+$/.test(name)) continue;
    const owner = await stat(`/proc/${name}`).catch(() => undefined); // it has ended meanwhile
    if (owner !== undefined) found.add(owner.uid);
  }
  return found;
}

/** Makes a file the user's alone, and makes it first where there is none. Never follows a link. */
export async function giveTo(path: string, user: number): Promise<void> {
  const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  try {
    await file.chown(user, user);
    await file.chmod(0o600);
  } finally {
    await file.close();
  }
}

/** The same for the file of a volume, with the way to it; `readOnly`: only to read. A missing file is left to the program that opens it. */
export async function giveVolumeTo(
  { path, readOnly }: { readonly path: string; readonly readOnly: boolean },
  user: number,
): Promise<void> {
  const file = await openThere(path);
  if (file === undefined) return;
  try {
    // Its owner first: who is not it any more cannot change the mode after us.
    await file.chown(readOnly ? 0 : user, user);
    await file.chmod(readOnly ? 0o640 : 0o600);
    await chmod(dirname(path), 0o711);
  } finally {
    await file.close();
  }
}

/** Who was given a file; undefined: no user, or it is not there. */
export async function holderOf(path: string): Promise<number | undefined> {
  const found = await lstat(path).catch(() => undefined);
  return found === undefined || found.gid === 0 ? undefined : found.gid;
}

/** A file that this user was given is root's alone again. One that is not there, or somebody else's by now, is left as it is. */
export async function takeBack(path: string, user: number): Promise<void> {
  const file = await openThere(path);
  if (file === undefined) return;
  try {
    const { uid, gid } = await file.stat();
    if (uid !== user && gid !== user) return;
    await file.chown(0, 0);
    await file.chmod(0o600);
  } finally {
    await file.close();
  }
}

async function openThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ELOOP'))
      return undefined;
    throw error;
  }
}

/** The first folder on the way to `path` that others may not pass through. */
export async function closedFolder(path: string): Promise<string | undefined> {
  const above = dirname(path);
  const found = above === path ? undefined : await closedFolder(above);
  if (found !== undefined) return found;
  return ((await stat(path)).mode & 0o001) === 0 ? path : undefined;
}
