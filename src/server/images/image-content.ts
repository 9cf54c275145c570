// The files of images that users upload, in one directory, each under its SHA-256. Several control planes may share the
// directory. A file gets its final name only after the checksum and the gate, and only files with a final name are served.
//
//   absent -> <hex>.<control plane>.part, piece by piece -> complete: checksum, gate -> <hex>      \-> refused: removed
//
// A partial file has one writer, so a checked file is never changed. A control plane that continues an upload which another one
// began copies the other's partial file.

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError } from '../../api/errors.ts';
import type { ImageSpec } from '../../api/resources/image.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { append, fill, longestPart, readFrom, sha256Of, sizeOf, syncDirectory } from './part-file.ts';

/** The result of the gate: the same as on hosts that fetch the image. */
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
  /** Created with mode 0700. */
  readonly directory: string;
  /** Of one file, in the form in which it is uploaded. */
  readonly bytesMax: number;
  readonly inspect: InspectImage;
  /** Identifies this control plane among all that share the directory; the same after a restart. */
  readonly owner: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface ImagePiece {
  /** 64 hex digits: SHA-256 of the whole file. */
  readonly hex: string;
  readonly totalBytes: number;
  /** The position of the piece in the file. */
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
  /** Identifies the file while it is being received; not part of a path. */
  readonly key: string;
  /** Any other length is an error. */
  readonly totalBytes: number;
}

export interface TakenFile {
  readonly hex: string;
  readonly digest: string;
  readonly virtualSizeBytes: number;
}

export interface ImageContent {
  /**
   * Receives one piece; the last one completes the file. Throws `Conflict` with `details.receivedBytes` when the piece does not begin
   * where the last one ended or when another is being written, `InvalidRequest` for a refused image, `StoreFull` for a full disk.
   */
  receive(piece: ImagePiece): Promise<Received>;
  /** Receives a complete file of unknown checksum. Throws like `receive`, and what `bytes` throws. */
  take(file: NewFile): Promise<TakenFile>;
  /** The file from `start` on; the complete file, with `start` 0, when it has no bytes from `start` on. Throws `NotFound`. */
  read(
    hex: string,
    start: number,
  ): Promise<{ readonly sizeBytes: number; readonly start: number; readonly bytes: AsyncIterable<Uint8Array> }>;
  /** Removes files that no image names and that were not changed for a day. Never throws. */
  sweep(named: ReadonlySet<string>): Promise<void>;
}

const untouchedMsMin = 24 * 60 * 60 * 1000;

export function createImageContent(options: ImageContentOptions): ImageContent {
  return new DirectoryOfImages(options);
}

class DirectoryOfImages implements ImageContent {
  readonly #options: ImageContentOptions;
  readonly #writer: string;
  /** The files that are being written. */
  readonly #busy = new Set<string>();

  constructor(options: ImageContentOptions) {
    this.#options = options;
    this.#writer = createHash('sha256').update(options.owner).digest('hex').slice(0, 16);
  }

  async receive(piece: ImagePiece): Promise<Received> {
    const { bytesMax } = this.#options;
    const { hex, totalBytes } = piece;
    if (totalBytes > bytesMax) throw tooLarge(totalBytes, bytesMax);
    if (this.#busy.has(hex))
      throw new ApiError('Conflict', 'another client is uploading the same file now; try again when it is done');
    this.#busy.add(hex);
    try {
      return await this.#receiveNow(piece);
    } catch (error) {
      throw diskError(error);
    } finally {
      this.#busy.delete(hex);
    }
  }

  async take(file: NewFile): Promise<TakenFile> {
    const { bytesMax } = this.#options;
    if (file.totalBytes > bytesMax) throw tooLarge(file.totalBytes, bytesMax);
    const name = createHash('sha256').update(file.key).digest('hex');
    if (this.#busy.has(name)) throw new ApiError('Conflict', 'the same is being done already');
    this.#busy.add(name);
    const part = this.#partOf(name);
    try {
      return await this.#takeNow(file, part);
    } catch (error) {
      await rm(part, { force: true });
      throw diskError(error);
    } finally {
      this.#busy.delete(name);
    }
  }

  async read(hex: string, start: number): ReturnType<ImageContent['read']> {
    const file = await open(this.#pathOf(hex), constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => undefined);
    if (file === undefined)
      throw new ApiError(
        'NotFound',
        `this control plane has no file sha256:${hex}; where several share a store they must share imageDirectory too; else upload it again`,
      );
    const { size } = await file.stat();
    const from = start < size ? start : 0;
    return { sizeBytes: size, start: from, bytes: readFrom(file, { start: from }) };
  }

  async sweep(named: ReadonlySet<string>): Promise<void> {
    const { directory, clock, log } = this.#options;
    try {
      for (const entry of await readdir(directory)) {
        const [, hex, rest] = /^([0-9a-f]{64})((?:\.[0-9a-f]{16})?(?:\.part)?(?:\.unpacking)?)$/.exec(entry) ?? [];
        if (hex === undefined || this.#busy.has(hex) || (named.has(hex) && rest === '')) continue;
        const { mtimeMs } = await stat(join(directory, entry));
        if (clock.nowMs() - mtimeMs < untouchedMsMin) continue;
        log.info('removing an uploaded file that no image names', { file: entry });
        await rm(join(directory, entry), { force: true });
      }
    } catch (error) {
      log.warn('cannot look through the uploaded images', { directory, error: describeError(error) });
    }
  }

  async #receiveNow(piece: ImagePiece): Promise<Received> {
    const { directory } = this.#options;
    const { hex, totalBytes } = piece;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const there = await stat(this.#pathOf(hex)).catch(() => undefined);
    if (there !== undefined) return this.#useExisting(piece);
    const part = this.#partOf(hex);
    await this.#continueAt(part, piece);
    const size = await append(part, piece);
    if (size < totalBytes) return { complete: false, receivedBytes: size };
    try {
      await assertChecksum(part, hex);
      const received = await this.#inspect(piece, part);
      await this.#publish(part, hex);
      return received;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'InvalidRequest') await rm(part, { force: true });
      throw error;
    }
  }

  /** Uploaded before, perhaps for another image: a file that no image names must not be swept before this image names it. */
  async #useExisting(piece: ImagePiece): Promise<Received> {
    const path = this.#pathOf(piece.hex);
    const nowSeconds = this.#options.clock.nowMs() / 1000;
    await utimes(path, nowSeconds, nowSeconds);
    await rm(this.#partOf(piece.hex), { force: true }); // another control plane was faster
    return this.#inspect(piece, path);
  }

  /** Makes the partial file end at the piece's offset, with the data of another control plane if needed. */
  async #continueAt(part: string, { hex, offset }: ImagePiece): Promise<void> {
    const ownBytes = await sizeOf(part);
    const longest = await longestPart(this.#options.directory, hex);
    const receivedBytes = Math.max(ownBytes, longest.sizeBytes);
    if (offset !== ownBytes && offset !== receivedBytes) throw notThere({ receivedBytes, offset });
    if (offset === ownBytes) return;
    const filled = await fill(part, { from: longest.path, ownBytes, untilBytes: offset });
    if (filled !== offset) throw notThere({ receivedBytes: filled, offset }); // the other file is being rewritten
  }

  async #takeNow({ totalBytes, bytes, format, decompress }: NewFile, part: string): Promise<TakenFile> {
    await mkdir(this.#options.directory, { recursive: true, mode: 0o700 });
    await rm(part, { force: true });
    const size = await append(part, { totalBytes, offset: 0, bytes });
    if (size !== totalBytes)
      throw new ApiError('HostUnreachable', `only ${size} of ${totalBytes} bytes of the disk arrived; try again`);
    const hex = await sha256Of(part);
    const { digest, virtualSizeBytes } = await this.#inspect({ totalBytes, format, decompress }, part);
    await this.#publish(part, hex);
    return { hex, digest, virtualSizeBytes };
  }

  async #inspect(
    piece: Pick<ImagePiece, 'totalBytes' | 'format' | 'decompress'>,
    path: string,
  ): Promise<Extract<Received, { complete: true }>> {
    const inspected = await this.#options.inspect(path, piece);
    if (!inspected.ok)
      throw new ApiError('InvalidRequest', `the image is refused: ${inspected.reason}`, { field: 'content' });
    const { digest, virtualSizeBytes } = inspected;
    return { complete: true, receivedBytes: piece.totalBytes, digest, virtualSizeBytes };
  }

  async #publish(part: string, hex: string): Promise<void> {
    await rename(part, this.#pathOf(hex));
    await syncDirectory(this.#options.directory);
  }

  #pathOf(hex: string): string {
    return join(this.#options.directory, hex);
  }

  #partOf(hex: string): string {
    return `${this.#pathOf(hex)}.${this.#writer}.part`;
  }
}

async function assertChecksum(part: string, hex: string): Promise<void> {
  const actual = await sha256Of(part);
  if (actual !== hex)
    throw new ApiError(
      'InvalidRequest',
      `the upload has the checksum sha256:${actual}, not sha256:${hex}; upload it again`,
      { field: 'checksum' },
    );
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
