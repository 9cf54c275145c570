// Makes a file or a folder durable.

import { type FileHandle, open } from 'node:fs/promises';

/** After `prepare`. */
export async function sync(path: string, prepare?: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await open(path, 'r');
  try {
    await prepare?.(file);
    await file.sync();
  } finally {
    await file.close();
  }
}
