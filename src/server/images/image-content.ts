// The files of images that users upload, in one directory, each under its SHA-256. Several control planes may share the directory. What
// has not passed the checksum and the gate never gets its name, and nothing is served that has not got one.
//
//   absent -> <hex>.<control plane>.part, piece by piece -> whole: checksum, gate -> <hex>      \-> refused: removed
//
// A part has one writer, so nobody changes what has passed. A control plane that is to go on where another stopped copies what that one has.

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, truncate, type FileHandle, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError } from '../../api/errors.ts';
import type { ImageSpec } from '../../api/resources/image.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';

/** What the gate found: the same as hosts find when they fetch it. */
export type InspectedImage =
  | {
      readonly ok: true;
      /** `sha256:<hex>` of the unpacked file. */
      readonly digest: string;
      readonly virtualSizeBytes: number;
    }
  | { readonly ok: false; readonly reason: string };

export type InspectImage = (
  path: string,
  how: { readonly format: ImageSpec['format']; readonly decompress: ImageSpec['decompress'] },
) => Promise<InspectedImage>;

export interface ImageContentOptions {
  /** Made with mode 0700. */
  readonly directory: string;
  /** Of one file, as it is uploaded. */
  readonly bytesMax: number;
  readonly inspect: InspectImage;
  /** Which control plane this is, of all that share the directory, now and after a restart. */
  readonly owner: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface ImagePiece {
  /** 64 hex digits: SHA-256 of the whole file. */
  readonly hex: string;
  readonly totalBytes: number;
  /** Where in the file the piece begins. */
  readonly offset: number;
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly format: ImageSpec['format'];
  readonly decompress: ImageSpec['decompress'];
}

export type Received =
  | { readonly complete: false; readonly receivedBytes: number }
  | {
      readonly complete: true;
      readonly receivedBytes: number;
      readonly digest: string;
      readonly virtualSizeBytes: number;
    };

export interface NewFile extends Pick<ImagePiece, 'bytes' | 'format' | 'decompress'> {
  /** Tells one that is being taken from another; no part of a path. */
  readonly key: string;
  /** Another length is a failure. */
  readonly totalBytes: number;
}

export interface TakenFile {
  readonly hex: string;
  readonly digest: string;
  readonly virtualSizeBytes: number;
}

export interface ImageContent {
  /**
   * Takes one piece; the last one completes the file. Throws `Conflict` with `details.receivedBytes` when the piece does not begin
   * where the last one ended or when another is being written, `InvalidRequest` for what is refused, `StoreFull` for a full disk.
   */
  receive(piece: ImagePiece): Promise<Received>;
  /** A whole file of which nothing is known beforehand. Throws what `receive` throws, and what `bytes` throws. */
  take(file: NewFile): Promise<TakenFile>;
  /** The file from `start` on; the whole of it, with `start` 0, where there is nothing from there on. Throws `NotFound`. */
  read(
    hex: string,
    start: number,
  ): Promise<{ readonly sizeBytes: number; readonly start: number; readonly bytes: AsyncIterable<Uint8Array> }>;
  /** Removes what no image names and nobody has touched for a day. Never throws. */
  sweep(named: ReadonlySet<string>): Promise<void>;
}

const untouchedMsMin = 24 * 60 * 60 * 1000;
const chunkBytes = 1024 * 1024;

export function createImageContent(options: ImageContentOptions): ImageContent {
  const { directory, bytesMax, log } = options;
  const busy = new Set<string>();
  const pathOf = (hex: string): string => join(directory, hex);
  const writer = createHash('sha256').update(options.owner).digest('hex').slice(0, 16);
  const partOf = (hex: string): string => `${pathOf(hex)}.${writer}.part`;

  const complete = async (piece: ImagePiece, path: string): Promise<Extract<Received, { complete: true }>> => {
    const inspected = await options.inspect(path, piece);
    if (!inspected.ok)
      throw new ApiError('InvalidRequest', `the image is refused: ${inspected.reason}`, { field: 'content' });
    const { digest, virtualSizeBytes } = inspected;
    return { complete: true, receivedBytes: piece.totalBytes, digest, virtualSizeBytes };
  };

  const receive = async (piece: ImagePiece): Promise<Received> => {
    const { hex, totalBytes, offset } = piece;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const there = await stat(pathOf(hex)).catch(() => undefined);
    if (there !== undefined) {
      // Uploaded before, perhaps for another image: an old one that nobody named must not be swept away until this one is there.
      const nowSeconds = options.clock.nowMs() / 1000;
      await utimes(pathOf(hex), nowSeconds, nowSeconds);
      await rm(partOf(hex), { force: true }); // another control plane was faster
      return complete(piece, pathOf(hex));
    }
    const part = partOf(hex);
    const ownBytes = await sizeOf(part);
    const longest = await longestPart(directory, hex);
    const receivedBytes = Math.max(ownBytes, longest.sizeBytes);
    if (offset !== ownBytes && offset !== receivedBytes) throw notThere({ receivedBytes, offset });
    const filled =
      offset === ownBytes ? offset : await fill(part, { from: longest.path, ownBytes, untilBytes: offset });
    if (filled !== offset) throw notThere({ receivedBytes: filled, offset }); // that one is being written anew
    const size = await append(part, piece);
    if (size < totalBytes) return { complete: false, receivedBytes: size };
    try {
      const actual = await sha256Of(part);
      if (actual !== hex)
        throw new ApiError(
          'InvalidRequest',
          `the upload has the checksum sha256:${actual}, not sha256:${hex}; upload it again`,
          {
            field: 'checksum',
          },
        );
      const received = await complete(piece, part);
      await rename(part, pathOf(hex));
      await syncDirectory(directory);
      return received;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'InvalidRequest') await rm(part, { force: true });
      throw error;
    }
  };

  return {
    async receive(piece) {
      if (piece.totalBytes > bytesMax) throw tooLarge(piece.totalBytes, bytesMax);
      if (busy.has(piece.hex))
        throw new ApiError('Conflict', 'another client is uploading the same file now; try again when it is done');
      busy.add(piece.hex);
      try {
        return await receive(piece);
      } catch (error) {
        throw diskError(error);
      } finally {
        busy.delete(piece.hex);
      }
    },

    async take({ key, totalBytes, bytes, format, decompress }) {
      if (totalBytes > bytesMax) throw tooLarge(totalBytes, bytesMax);
      const name = createHash('sha256').update(key).digest('hex');
      const part = partOf(name);
      if (busy.has(name)) throw new ApiError('Conflict', 'the same is being done already');
      busy.add(name);
      try {
        await mkdir(directory, { recursive: true, mode: 0o700 });
        await rm(part, { force: true });
        const piece = { hex: name, totalBytes, offset: 0, bytes, format, decompress };
        const size = await append(part, piece);
        if (size !== totalBytes)
          throw new ApiError('HostUnreachable', `only ${size} of ${totalBytes} bytes of the disk arrived; try again`);
        const hex = await sha256Of(part);
        const received = await complete(piece, part);
        await rename(part, pathOf(hex));
        await syncDirectory(directory);
        return { hex, digest: received.digest, virtualSizeBytes: received.virtualSizeBytes };
      } catch (error) {
        await rm(part, { force: true });
        throw diskError(error);
      } finally {
        busy.delete(name);
      }
    },

    async read(hex, start) {
      const file = await open(pathOf(hex), constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => undefined);
      if (file === undefined)
        throw new ApiError(
          'NotFound',
          `this control plane has no file sha256:${hex}; where several share a store they must share imageDirectory too; else upload it again`,
        );
      const { size } = await file.stat();
      const from = start < size ? start : 0;
      return { sizeBytes: size, start: from, bytes: readFrom(file, { start: from }) };
    },

    async sweep(named) {
      try {
        for (const entry of await readdir(directory)) {
          const [, hex, rest] = /^([0-9a-f]{64})((?:\.[0-9a-f]{16})?(?:\.part)?(?:\.unpacking)?)$/.exec(entry) ?? [];
          if (hex === undefined || busy.has(hex) || (named.has(hex) && rest === '')) continue;
          const { mtimeMs } = await stat(join(directory, entry));
          if (options.clock.nowMs() - mtimeMs < untouchedMsMin) continue;
          log.info('removing an uploaded file that no image names', { file: entry });
          await rm(join(directory, entry), { force: true });
        }
      } catch (error) {
        log.warn('cannot look through the uploaded images', { directory, error: describeError(error) });
      }
    },
  };
}

function tooLarge(bytes: number, bytesMax: number): ApiError {
  return new ApiError('PayloadTooLarge', `${bytes} bytes are more than the ${bytesMax} that an image may have`, {
    field: 'totalBytes',
  });
}

function notThere({ receivedBytes, offset }: { readonly receivedBytes: number; readonly offset: number }): ApiError {
  return new ApiError(
    'Conflict',
    `${receivedBytes} bytes of this file were received: continue from there, not from ${offset}`,
    { field: 'offset', details: { receivedBytes } },
  );
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

/** Of all control planes that share the directory. */
async function longestPart(
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

/** Adds to a part what another has more, and answers how long it is then. What it is made of is seen by its checksum at the end. */
async function fill(
  path: string,
  { from, ownBytes, untilBytes }: { readonly from: string; readonly ownBytes: number; readonly untilBytes: number },
): Promise<number> {
  const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => undefined); // it is whole by now, or gone
  if (source === undefined) return ownBytes;
  const bytes = readFrom(source, { start: ownBytes, end: untilBytes });
  return append(path, { offset: ownBytes, totalBytes: untilBytes, bytes });
}

/** The size of the file afterwards. A piece that breaks off leaves what came of it. */
async function append(
  path: string,
  { offset, totalBytes, bytes }: Pick<ImagePiece, 'offset' | 'totalBytes' | 'bytes'>,
): Promise<number> {
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
    // A disk that filled up in the middle of a write must not count what is not there.
    await truncate(path, size).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
}

async function sha256Of(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const hash = createHash('sha256');
  for await (const chunk of readFrom(file, { start: 0 })) hash.update(chunk);
  return hash.digest('hex');
}

/** To its end, or to `end`; closes it. */
async function* readFrom(
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

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function diskError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code !== 'ENOSPC' && code !== 'EDQUOT' && code !== 'EFBIG') return error;
  return new ApiError(
    'StoreFull',
    "the control plane's disk for images is full; free some space, then continue the upload",
    {
      cause: error,
    },
  );
}
