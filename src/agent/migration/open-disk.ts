// A file of this host, for reading. A symbolic link in its place is refused.

import { constants, open } from 'node:fs/promises';
import type { DiskReader } from './moved-files.ts';

export async function openDisk(path: string): Promise<DiskReader> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size: sizeBytes } = await file.stat();
    return {
      sizeBytes,
      async read(offset, length) {
        const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, sizeBytes - offset)));
        for (let done = 0; done < bytes.length; ) {
          const { bytesRead } = await file.read(bytes, done, bytes.length - done, offset + done);
          if (bytesRead === 0) throw new Error(`${path} became shorter while it was read`);
          done += bytesRead;
        }
        return bytes;
      },
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}
