// One image from its source or a mirror to a checked file of the cache. What it leaves behind on failure is nothing, or the part of a
// download that a later try can go on with. Never gives a file its name that has not passed checksum, size and gate.

import { diskFormat } from '../disk-format.ts';
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImageSpec } from '../../../api/resources/image.ts';
import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Places } from '../../../base/places.ts';
import type { Prng } from '../../../base/prng.ts';
import { DriverError } from '../../host/driver-error.ts';
import { bombBytes } from '../unpack/bomb.ts';
import { diskInTar } from '../unpack/disk-in-tar.ts';
import { authorizationOf, type CredentialFor } from '../credentials/image-credentials.ts';
import { type HttpGet, printableUrl } from './http-get.ts';
import type { ImageProgress } from '../image-cache.ts';
import { type ImageFileLimits, refuseTooMuch, writeImage, writeSmallFile } from '../unpack/image-file.ts';
import { checkImage } from '../unpack/image-gate.ts';
import { readPartialRecord } from '../image-record.ts';
import {
  localPathOf,
  readHttp,
  readLocalFile,
  type RemoteFile,
  SourceChanged,
  type SourceContext,
  type SourceVersion,
  tooLarge,
} from './image-source.ts';
import { findOciLayer, type OciLayer } from './oci-source.ts';
import { unpack } from '../unpack/unpack.ts';
import { hasZstd, writeByZstd } from '../unpack/unpack-by-zstd.ts';

export interface FetchOptions {
  readonly directory: string;
  /** Throws for a path that images may not come from. */
  readonly allowFile: (path: string) => Promise<void>;
  readonly get: HttpGet;
  /** Where the control plane keeps what was uploaded to it; absent: nowhere. */
  readonly uploaded?: (source: string) => RemoteFile;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** For images of which bytes come. */
  readonly unpackers: Places;
  /** Whether the program unpacks zstd. Default: where there is one. */
  readonly zstdProgram?: boolean;
  /** Of one image, packed and unpacked. */
  readonly maxBytes: number;
  /** The largest disk an image may show to a guest. */
  readonly maxVirtualBytes: number;
  readonly stallTimeoutMs: number;
  readonly slowWindowMs: number;
  readonly slowBytesMin: number;
  readonly attemptsMax: number;
  /** Nothing comes over a network that no checksum stands for. */
  readonly checksumsRequired: boolean;
}

export interface FetchJob {
  readonly name: string;
  readonly image: ImageSpec;
  readonly key: string;
  readonly signal: AbortSignal;
  readonly tell: (progress: ImageProgress) => void;
  readonly credentialFor: CredentialFor;
}

export interface FetchedImage {
  /** `sha256:<hex>` of the unpacked file. */
  readonly digest: string;
  readonly sizeBytes: number;
  readonly virtualSizeBytes: number;
  /** Of the file at the source. */
  readonly sourceChecksum: string;
  readonly sourceBytes: number;
}

const restartsMax = 3;
/** With another source at hand there is no point in waiting long for this one. */
const attemptsMaxWithMirrors = 2;

/** Writes the image, unpacked and checked, to `temporary`. Throws `DriverError` or the disk's error; the caller removes what is there. */
export async function fetchImage(job: FetchJob, temporary: string, options: FetchOptions): Promise<FetchedImage> {
  const written = await fromAnySource(job, temporary, options);
  job.tell({ stage: 'checking', doneBytes: 0, totalBytes: written.sizeBytes });
  const virtualSizeBytes = await passGate(temporary, job, options);
  job.tell({ stage: 'checking', doneBytes: written.sizeBytes, totalBytes: written.sizeBytes });
  if (job.signal.aborted) throw new DriverError('Aborted', `fetching image "${job.name}" was given up`);
  await chmod(temporary, 0o444);
  return { ...written, virtualSizeBytes };
}

type Written = Omit<FetchedImage, 'virtualSizeBytes'>;

/** The source, then each mirror. What one brought is what the next goes on from, where a checksum decides in the end. */
async function fromAnySource(job: FetchJob, temporary: string, options: FetchOptions): Promise<Written> {
  const sources = [job.image.source, ...(job.image.mirrors ?? [])];
  const failures: DriverError[] = [];
  for (const [i, source] of sources.entries()) {
    const attemptsMax = i < sources.length - 1 ? attemptsMaxWithMirrors : options.attemptsMax;
    try {
      return await fromSource({ ...job, source }, temporary, {
        ...options,
        attemptsMax: Math.min(attemptsMax, options.attemptsMax),
      });
    } catch (error) {
      const elsewhere =
        error instanceof DriverError && (error.code === 'ImageUnavailable' || error.code === 'ImageChecksumMismatch');
      if (!elsewhere || sources.length === 1) throw error;
      failures.push(error);
      if (error.code === 'ImageChecksumMismatch') await dropPartial(options.directory, job.key);
      options.log.warn('a source of an image is of no use', { image: job.name, error: error.message });
    }
  }
  const away = failures.find(({ code }) => code === 'ImageUnavailable');
  const told = failures.map(({ message }) => message).join('; ');
  throw new DriverError(
    away?.code ?? 'ImageChecksumMismatch',
    `none of ${sources.length} sources has it: ${told}`,
    failures.at(-1),
  );
}

interface SourceJob extends FetchJob {
  readonly source: string;
}

/** Fetches and unpacks in one go; starts over when the server's file changed meanwhile. */
async function fromSource(job: SourceJob, temporary: string, options: FetchOptions): Promise<Written> {
  for (let restarts = 0; ; restarts++) {
    try {
      return await fetchOnce(job, temporary, options);
    } catch (error) {
      if (!(error instanceof SourceChanged)) throw error;
      await dropPartial(options.directory, job.key);
      options.log.warn('the download of an image starts over', { image: job.name, reason: error.message });
      if (restarts === restartsMax) {
        throw new DriverError(
          'ImageUnavailable',
          `cannot fetch ${printableUrl(job.source)}: ${error.message}, ${restarts + 1} times; try again later`,
          error,
        );
      }
    }
  }
}

async function fetchOnce(job: SourceJob, temporary: string, options: FetchOptions): Promise<Written> {
  const { image, signal, tell } = job;
  let leave: (() => void) | undefined; // once bytes come
  const sourceHash = createHash('sha256');
  let sourceBytes = 0;
  let sourceTotal: number | undefined;
  const told: Told = { pieces: 0 };
  const layer = job.source.startsWith('oci:') ? await findLayer(job, options) : undefined;
  const stage = image.decompress === 'none' ? 'downloading' : 'unpacking';
  const onVersion = (version: SourceVersion): void => {
    sourceTotal = version.totalBytes;
    if (image.sizeBytes !== undefined && sourceTotal !== undefined && sourceTotal !== image.sizeBytes)
      throw wrongSize(job, sourceTotal, image.sizeBytes);
  };
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const chunk of sourceOf(job, { told, layer }, options, onVersion)) {
      leave ??= await options.unpackers.enter(signal);
      sourceBytes += chunk.length;
      if (sourceBytes > options.maxBytes) throw tooLarge(job.source, sourceBytes, { bytesMax: options.maxBytes });
      if (image.sizeBytes !== undefined && sourceBytes > image.sizeBytes)
        throw wrongSize(job, sourceBytes, image.sizeBytes);
      sourceHash.update(chunk);
      tell({
        stage: 'downloading',
        doneBytes: sourceBytes,
        ...(sourceTotal === undefined ? {} : { totalBytes: sourceTotal }),
      });
      yield chunk;
    }
  }
  const limits: ImageFileLimits = {
    bytesMax: options.maxBytes,
    // Measured against the whole source where its size is known: zeros at a disk's beginning are no bomb.
    allowedBytes: () => bombBytes(sourceTotal ?? sourceBytes),
    allowedInAll: () => (sourceTotal === undefined ? Number.POSITIVE_INFINITY : bombBytes(sourceTotal)),
  };
  const packed =
    layer?.archive === undefined
      ? counted()
      : diskInTar(bounded(unpack(counted(), layer.archive.packing, signal), limits));
  const onWritten = (bytes: number): void => {
    if (stage === 'unpacking' && sourceBytes === sourceTotal) tell({ stage, doneBytes: bytes });
  };
  const byProgram = image.decompress === 'zstd' && (options.zstdProgram ?? (await hasZstd()));
  const writing = byProgram
    ? writeByZstd({ path: temporary, packed, limits, onWritten, clock: options.clock, signal })
    : writeImage(temporary, unpack(packed, image.decompress, signal), limits, onWritten);
  const written = await writing
    .finally(() => leave?.())
    .catch((error: unknown) => {
      // Bytes of several answers that do not fit together look like a damaged archive: the whole of one answer is worth a try.
      if (told.pieces > 1 && error instanceof DriverError && error.code === 'ImageInvalid')
        throw new SourceChanged('what came in pieces cannot be unpacked', { cause: error });
      throw error;
    });
  const sourceChecksum = `sha256:${sourceHash.digest('hex')}`;
  for (const wanted of [image.checksum, told.digest]) {
    if (wanted === undefined || wanted === sourceChecksum) continue;
    if (told.pieces > 1) throw new SourceChanged('what came in pieces has another checksum');
    throw new DriverError(
      'ImageChecksumMismatch',
      `image "${job.name}" from ${printableUrl(job.source)} has ${sourceChecksum}, not ${wanted}: the file is damaged or another one; check source and checksum`,
    );
  }
  if (image.sizeBytes !== undefined && sourceBytes !== image.sizeBytes)
    throw wrongSize(job, sourceBytes, image.sizeBytes);
  return { ...written, sourceChecksum, sourceBytes };
}

/** Also what is passed over in an archive has come out of it. */
async function* bounded(chunks: AsyncIterable<Uint8Array>, limits: ImageFileLimits): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    refuseTooMuch(bytes, limits);
    yield chunk;
  }
}

function wrongSize({ name, source }: SourceJob, bytes: number, wanted: number): DriverError {
  return new DriverError(
    'ImageChecksumMismatch',
    `image "${name}" from ${printableUrl(source)} has ${bytes} bytes or more, not ${wanted}: the file is damaged or another one; check source and sizeBytes`,
  );
}

/** What came to light on the way. */
interface Told {
  /** Answers, and parts of earlier tries, that the bytes are put together from. */
  pieces: number;
  /** By the source's own index. */
  digest?: string;
}

/** What is left of an earlier try first, then the rest from the server; every new byte is kept in case this breaks too. */
async function* sourceOf(
  job: SourceJob,
  { told, layer }: { readonly told: Told; readonly layer: OciLayer | undefined },
  options: FetchOptions,
  tellVersion: (version: SourceVersion) => void,
): AsyncGenerator<Uint8Array> {
  const { image, source, key, signal } = job;
  const context = contextOf(job, options);
  if (source.startsWith('file:')) {
    await options.allowFile(localPathOf(source));
    yield* readLocalFile(source, context, async (version) => tellVersion(version));
    return;
  }
  if (options.checksumsRequired && !context.checksummed) {
    throw new DriverError(
      'ImageChecksumMismatch',
      `image "${job.name}" from ${printableUrl(source)} has no checksum, and this host's agent takes none without (imageChecksums); give it one: berth image add --checksum`,
    );
  }
  const locate = locatorOf(job, { told, layer }, options);
  const text = await readIfThere(partialRecordPath(options.directory, key));
  const known = text === undefined ? undefined : readPartialRecord(text);
  const bootId = (await readIfThere('/proc/sys/kernel/random/boot_id'))?.trim() ?? '';
  const sameServer = known?.source === source;
  const ours =
    sameServer ||
    (context.checksummed && known !== undefined && [image.source, ...(image.mirrors ?? [])].includes(known.source));
  const resumes = ours && known.bootId === bootId && (known.validator !== undefined || context.checksummed);
  const partial = await open(
    join(options.directory, `${key}.partial`),
    constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | (resumes ? 0 : constants.O_TRUNC),
    0o600,
  );
  try {
    let offset = 0;
    const first: SourceVersion = resumes ? versionIn(known) : {};
    if (resumes) {
      tellVersion(first);
      for (;;) {
        const { bytesRead, buffer } = await partial.read(Buffer.allocUnsafe(1024 * 1024), 0, 1024 * 1024, offset);
        if (bytesRead === 0) break;
        offset += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
      if (offset > 0) {
        told.pieces++;
        options.log.info('going on with a broken download', { image: job.name, offset });
      }
    }
    let keeps = resumes && offset > 0;
    const from = { source, offset, known: keeps ? first : {}, sameServer };
    const rest = readHttp(locate, from, context, async (version) => {
      tellVersion(version);
      keeps = version.validator !== undefined || context.checksummed;
      if (!keeps) return;
      const record = { source, bootId, ...version };
      await writeSmallFile(partialRecordPath(options.directory, key), JSON.stringify(record));
    });
    for await (const chunk of rest) {
      if (signal.aborted) throw new DriverError('Aborted', `fetching image "${job.name}" was given up`);
      if (keeps) {
        await partial.write(chunk, 0, chunk.length, offset);
        offset += chunk.length;
      }
      yield chunk;
    }
  } finally {
    await partial.close();
  }
}

function contextOf({ image, source, signal }: SourceJob, options: FetchOptions): SourceContext {
  const { clock, prng, stallTimeoutMs, slowWindowMs, slowBytesMin, attemptsMax, maxBytes } = options;
  return {
    ...{ clock, prng, signal, stallTimeoutMs, slowWindowMs, slowBytesMin, attemptsMax, bytesMax: maxBytes },
    checksummed: image.checksum !== undefined || /^(berth|oci):/.test(source),
  };
}

function versionIn({ validator, totalBytes }: SourceVersion): SourceVersion {
  return {
    ...(validator === undefined ? {} : { validator }),
    ...(totalBytes === undefined ? {} : { totalBytes }),
  };
}

/** Before the first byte is asked for: whether the layer is an archive decides what is done with what comes. */
async function findLayer(job: SourceJob, options: FetchOptions): Promise<OciLayer> {
  const { source, image, signal, credentialFor } = job;
  const { get, clock, prng, stallTimeoutMs, attemptsMax } = options;
  for (let failures = 1; ; failures++) {
    const stalled = new AbortController();
    const timer = clock.setTimer(stallTimeoutMs, () => stalled.abort());
    try {
      const either = AbortSignal.any([signal, stalled.signal]);
      const credential = await credentialFor(source);
      return await findOciLayer(source, { get, signal: either, architecture: image.architecture, credential });
    } catch (error) {
      if (signal.aborted) throw new DriverError('Aborted', `fetching image "${job.name}" was given up`, error);
      if (error instanceof DriverError) throw error;
      const why = stalled.signal.aborted ? `nothing came for ${stallTimeoutMs} ms` : describeError(error);
      if (failures >= attemptsMax)
        throw new DriverError(
          'ImageUnavailable',
          `cannot fetch ${printableUrl(source)}: ${why}, ${failures} times in a row; look whether this host reaches the registry`,
          error,
        );
    } finally {
      timer.cancel();
    }
    await sleep(clock, backoffMs(failures, { delayMsMin: 250, delayMsMax: 10_000 }, prng), signal);
  }
}

/** Asked before each connection: a registry's token may be over by then. */
function locatorOf(
  { name, image, source, credentialFor }: SourceJob,
  { told, layer }: { readonly told: Told; readonly layer: OciLayer | undefined },
  options: FetchOptions,
): (signal: AbortSignal) => Promise<RemoteFile> {
  const { get } = options;
  let fresh: RemoteFile | undefined = layer;
  const find = async (signal: AbortSignal): Promise<RemoteFile> => {
    const found = fresh;
    fresh = undefined;
    if (found !== undefined) return found;
    const credential = await credentialFor(source);
    if (layer !== undefined) return findOciLayer(source, { get, signal, architecture: image.architecture, credential });
    if (source.startsWith('http:') || source.startsWith('https:'))
      return { url: source, headers: credential ? { authorization: authorizationOf(credential) } : {}, get };
    if (source.startsWith('berth:') && options.uploaded !== undefined) return options.uploaded(source);
    const message = `cannot fetch image "${name}": this host's agent does not know sources like ${printableUrl(source)}`;
    throw new DriverError('ImageUnavailable', message);
  };
  return async (signal) => {
    const file = await find(signal);
    told.pieces++;
    if (told.digest !== undefined && file.digest !== told.digest)
      throw new SourceChanged('the registry has another image under this name now');
    if (file.digest !== undefined) told.digest = file.digest;
    return file;
  };
}

async function passGate(path: string, { name, image }: FetchJob, { maxVirtualBytes }: FetchOptions): Promise<number> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const verdict = await checkImage(file, diskFormat(name, image), { virtualBytesMax: maxVirtualBytes });
    if (verdict.ok) return verdict.virtualSizeBytes;
    throw new DriverError(
      'ImageInvalid',
      `image "${name}" from ${printableUrl(image.source)} is refused: ${verdict.reason}`,
    );
  } finally {
    await file.close();
  }
}

function partialRecordPath(directory: string, key: string): string {
  return join(directory, `${key}.source.json`);
}

/** What is left of a download goes. */
export async function dropPartial(directory: string, key: string): Promise<void> {
  await rm(join(directory, `${key}.partial`), { force: true });
  await rm(partialRecordPath(directory, key), { force: true });
}

async function readIfThere(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined); // unreadable is as good as absent: fetch it whole
}
