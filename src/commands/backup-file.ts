// A backup as a file: compressed according to its name, readable by its owner only, and given its name only once it is
// complete and was read back.

import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { type Backup, readBackup } from '../server/storage/backup.ts';

/** `.zst` and `.gz` are compressed. Throws errors of reading and writing; then no file is left. */
export async function saveBackup(path: string, pieces: AsyncIterable<Uint8Array>): Promise<Backup> {
  const partial = `${path}.partial`;
  const file = await open(partial, 'w', 0o600);
  try {
    const into = createWriteStream(partial, { fd: file.fd, autoClose: false });
    await pipeline(Readable.from(pieces), compressionOf(path), into);
    await file.sync();
    const backup = await loadBackup(partial);
    await rename(partial, path);
    return backup;
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  } finally {
    await file.close().catch(() => {}); // the stream may have closed it
  }
}

/** Throws `BadBackup` for anything but a complete backup. */
export async function loadBackup(path: string): Promise<Backup> {
  const head = Buffer.alloc(4);
  const file = await open(path, 'r');
  try {
    await file.read(head, 0, 4, 0);
  } finally {
    await file.close();
  }
  // The magic numbers: RFC 8878, 3.1.1; RFC 1952, 2.3.1.
  const unpack =
    head.readUInt32LE(0) === 0xfd2fb528
      ? createZstdDecompress()
      : head.readUInt16BE(0) === 0x1f8b
        ? createGunzip()
        : undefined;
  const bytes = createReadStream(path, { highWaterMark: 1024 * 1024 });
  if (!unpack) return readBackup(bytes);
  let backup: Backup | undefined;
  await pipeline(bytes, unpack, async (pieces: AsyncIterable<Uint8Array>) => {
    backup = await readBackup(pieces);
  });
  if (!backup) throw new Error(`${path} could not be read`);
  return backup;
}

function compressionOf(path: string): Transform {
  if (path.endsWith('.zst')) return createZstdCompress();
  if (path.endsWith('.gz')) return createGzip();
  return new Transform({ transform: (piece, _, done) => done(null, piece) });
}
