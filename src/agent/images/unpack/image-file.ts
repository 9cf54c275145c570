// Writes an image to disk while it is unpacked: hashed, bounded, with holes for zeros, and known to be on disk before it gets its
// name. Nothing half-written ever stands under the final name.

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DriverError } from '../../host/driver-error.ts';

export interface ImageFileLimits {
  readonly bytesMax: number;
  /** Asked before every write: how many bytes may have come out by now. Stops what unpacks to far more than it was. */
  readonly allowedBytes: () => number;
  /** How many may come out in the end; infinite while the size of the source is not known. */
  readonly allowedInAll: () => number;
}

/** More than this is refused, whatever comes. */
export function lastAllowedByte({ bytesMax, allowedInAll }: ImageFileLimits): number {
  return Math.min(bytesMax, allowedInAll());
}

/** Refuses what will have unpacked to more than it may, as soon as that is certain. */
export function refuseWhatWillBeTooMuch(bytes: number, limits: ImageFileLimits): void {
  refuseTooMuch(bytes, { ...limits, allowedBytes: limits.allowedInAll });
}

export interface WrittenImage {
  readonly digest: string;
  readonly sizeBytes: number;
}

const zeros = Buffer.alloc(256 * 1024);

/** Throws `DriverError` `ImageTooLarge`; errors of the disk come as they are. The caller removes the file then. */
export async function writeImage(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  limits: ImageFileLimits,
  onWritten: (bytes: number) => void,
): Promise<WrittenImage> {
  const file = await beginImage(path);
  const writer = writerOf(file);
  try {
    const hash = createHash('sha256');
    let size = 0;
    for await (const chunk of chunks) {
      refuseTooMuch(size + chunk.length, limits);
      // Written while the next is unpacked and this one is hashed: so far as there are cores.
      if (!isZero(chunk)) await writer.write(chunk, size);
      hash.update(chunk);
      size += chunk.length;
      onWritten(size);
    }
    await writer.done();
    await file.truncate(size); // a hole at the end has not made the file longer yet
    await file.sync();
    return { digest: `sha256:${hash.digest('hex')}`, sizeBytes: size };
  } catch (error) {
    await writer.done().catch(() => {}); // what failed first is what counts
    throw error;
  } finally {
    await file.close();
  }
}

/** Empty, and not through links of others; opened to be written, and read back. */
export function beginImage(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, 0o600);
}

/** Throws `ImageTooLarge` when an image has more bytes than it may. */
export function refuseTooMuch(bytes: number, { bytesMax, allowedBytes }: ImageFileLimits): void {
  if (bytes > bytesMax)
    throw tooLarge(`it unpacks to more than the ${bytesMax} bytes that this host takes for one image`);
  if (bytes > allowedBytes())
    throw tooLarge(
      `it unpacks to far more than its packed size (${bytes} bytes so far); unpack it yourself if you trust it`,
    );
}

/** A file's writers wait for one another in the kernel, spinning: the next one is only begun beside what else is done. */
const writesMax = 1;
/** The disk begins with what is written while more comes, so that the end of it has not all to wait for. */
const flushEveryBytes = 16 * 1024 * 1024;

/** Some writes at a time, and memory for no more than those. */
function writerOf(file: FileHandle) {
  const writes: Promise<void>[] = [];
  let flushing: Promise<void> | undefined;
  let unflushedBytes = 0;
  const flush = async (): Promise<void> => {
    await file.datasync();
    flushing = undefined;
  };
  const begin = (work: Promise<void>): Promise<void> => {
    work.catch(() => {}); // reported where it is awaited: all are, but others may fail first
    return work;
  };
  return {
    /** Resolves when there is room for another. `chunk` must not change afterwards. */
    async write(chunk: Uint8Array, position: number): Promise<void> {
      if (writes.length === writesMax) await writes.shift();
      writes.push(begin(writeFully(file, chunk, position)));
      unflushedBytes += chunk.length;
      if (flushing !== undefined || unflushedBytes < flushEveryBytes) return;
      unflushedBytes = 0;
      flushing = begin(flush());
    },
    /** After success and failure: nothing may use the file any more when it is closed. Throws the first failure. */
    async done(): Promise<void> {
      const ends = await Promise.allSettled([...writes, flushing]);
      for (const end of ends) if (end.status === 'rejected') throw end.reason;
    },
  };
}

async function writeFully(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.length; ) {
    const { bytesWritten } = await file.write(chunk, done, chunk.length - done, position + done);
    done += bytesWritten;
  }
}

function isZero(chunk: Uint8Array): boolean {
  for (let at = 0; at < chunk.length; at += zeros.length) {
    const part = chunk.subarray(at, at + zeros.length);
    if (zeros.compare(part, 0, part.length, 0, part.length) !== 0) return false;
  }
  return true;
}

/** Gives a synced file its final name, so that after a power cut there is the whole file or none. */
export async function publish(temporary: string, path: string): Promise<void> {
  await rename(temporary, path);
  const directory = await open(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** A small file, whole or not at all. */
export async function writeSmallFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  const file = await open(
    temporary,
    constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    await file.writeFile(text);
    await file.sync();
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  await publish(temporary, path);
}

function tooLarge(reason: string): DriverError {
  return new DriverError('ImageTooLarge', `cannot take the image: ${reason}`);
}
