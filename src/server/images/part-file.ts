// Reads and writes the files of uploaded images. A file is never reached through a symbolic link.

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError } from '../../api/errors.ts';

const chunkBytes = 1024 * 1024;

interface Piece {
  /** The position of the piece in the file. */
  readonly offset: number;
  /** The size of the file when it is complete. */
  readonly totalBytes: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

export async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

/** The longest partial file of this image, of all control planes that share the directory. */
export async function longestPart(
  directory: string,
  hex: string,
): Promise<{ readonly path: string; readonly sizeBytes: number }> {
  let longest = { path: '', sizeBytes: 0 };
  for (const entry of await readdir(directory)) {
    if (!entry.startsWith(`${hex}.`) || !entry.endsWith('.part')) continue;
    const path = join(directory, entry);
    const sizeBytes = await sizeOf(path);
    if (sizeBytes > longest.sizeBytes) longest = { path, sizeBytes };
  }
  return longest;
}

/** Continues a partial file with the data of a longer one, and returns its new size. The checksum at the end covers both. */
export async function fill(
  path: string,
  { from, ownBytes, untilBytes }: { readonly from: string; readonly ownBytes: number; readonly untilBytes: number },
): Promise<number> {
  const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => undefined); // it is complete by now, or removed
  if (source === undefined) return ownBytes;
  const bytes = readFrom(source, { start: ownBytes, end: untilBytes });
  return append(path, { offset: ownBytes, totalBytes: untilBytes, bytes });
}

/** Returns the size of the file afterwards. An interrupted piece leaves the bytes that arrived. */
export async function append(path: string, { offset, totalBytes, bytes }: Piece): Promise<number> {
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  let size = offset;
  try {
    for await (const chunk of bytes) {
      if (size + chunk.length > totalBytes)
        throw new ApiError('InvalidRequest', `more than the ${totalBytes} bytes arrived that were announced`, {
          field: 'totalBytes',
        });
      for (let done = 0; done < chunk.length; ) {
        const { bytesWritten } = await file.write(chunk, done, chunk.length - done, size + done);
        done += bytesWritten;
      }
      size += chunk.length;
    }
    if (size === totalBytes) await file.sync();
    return size;
  } catch (error) {
    // When the disk fills up during a write, the size must not include bytes that were not written.
    await truncate(path, size).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
}

export async function sha256Of(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const hash = createHash('sha256');
  for await (const chunk of readFrom(file, { start: 0 })) hash.update(chunk);
  return hash.digest('hex');
}

/** Reads to the end of the file, or to `end`, and closes it. */
export async function* readFrom(
  file: FileHandle,
  { start, end = Infinity }: { readonly start: number; readonly end?: number },
): AsyncGenerator<Uint8Array> {
  try {
    for (let at = start; at < end; ) {
      const length = Math.min(chunkBytes, end - at);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
