// Replaces a file durably: a reader, also one after a crash, sees the old content or the new content, never a part of either.

import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes the whole file durably, or leaves it as it was. One writer at a time. */
export async function writeWhole(path: string, data: string | Uint8Array): Promise<void> {
  const temporary = `${path}.tmp`;
  try {
    const file = await open(temporary, 'w', 0o600);
    try {
      await file.writeFile(data);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Puts a file that another program has finished in its place, durably; only its owner may read it then. */
export async function putInPlace(temporary: string, path: string): Promise<void> {
  const file = await open(temporary, 'r');
  try {
    await file.chmod(0o600);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** Makes the names in a directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
