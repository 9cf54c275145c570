// The agent's own folders: nobody else may list or change them. Where libvirt runs guests as a user of its own, that one may pass through to
// a file that it may read and whose name it was told; nothing more.

import { chmod, mkdir, stat } from 'node:fs/promises';

/** Drivers whose guests are run by somebody else than the agent. */
export function needsPassage(drivers: readonly string[]): boolean {
  return drivers.includes('libvirt');
}

/** `passable`: also a folder that is there already is opened for passing through. */
export async function makeFolder(path: string, { passable }: { readonly passable: boolean }): Promise<void> {
  await mkdir(path, { recursive: true, mode: passable ? 0o711 : 0o700 });
  if (!passable) return;
  const { mode } = await stat(path);
  if ((mode & 0o011) !== 0o011) await chmod(path, (mode & 0o7777) | 0o011);
}
