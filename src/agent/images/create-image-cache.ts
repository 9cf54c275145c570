// The image cache of one host, in one directory of its own. Never publishes what has not passed checksum and gate, never
// changes a published file (guests' disks lie upon it), and never reads or writes outside its directory and `fileRoots`.
//
//   absent -> fetching (<key>.partial, <key>.unpacking) -> checking -> published (<key>.img, <key>.json)
//                 \-> failed: .unpacking removed; .partial kept only where a later try can go on with it

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, link, mkdir, open, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { ImageSpec } from '../../api/resources/image.ts';
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import { DriverError } from '../drivers/driver.ts';
import type { CachedImage, ImageCache, ImageProgress } from './image-cache.ts';
import { publish, writeImage, writeSmallFile } from './image-file.ts';
import { diskFormat } from './disk-format.ts';
import { checkImage } from './image-gate.ts';
import { type ImageRecord, readPartialRecord, readRecord } from './image-record.ts';
import {
  localPathOf,
  printableUrl,
  readHttp,
  readLocalFile,
  SourceChanged,
  type SourceContext,
  type SourceVersion,
  tooLarge,
} from './image-source.ts';
import { unpack } from './unpack.ts';

export interface ImageCacheOptions {
  /** For this cache alone; made with mode 0700. */
  readonly directory: string;
  /**
   * Where `file:` sources and `localPath` may lie, besides `directory`. An image's owner need not be the host's: without this
   * bound an image `file:///etc/shadow` would show that file to a guest. `['/']` allows all.
   */
  readonly fileRoots: readonly string[];
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Of one image, packed and unpacked. */
  readonly maxBytes?: number;
  /** The largest disk an image may show to a guest. */
  readonly maxVirtualBytes?: number;
  readonly stallTimeoutMs?: number;
  readonly attemptsMax?: number;
}

const gibibyte = 1024 ** 3;
/** Unpacking to more than 200 times the packed size is a bomb, once it is more than this. */
const ratioMax = 200;
const ratioFloorBytes = gibibyte;
/** Half downloads that nobody went on with. */
const partialAgeMsMax = 24 * 60 * 60 * 1000;
const progressEveryMs = 100;
const restartsMax = 3;

interface Waiter {
  readonly onProgress?: (progress: ImageProgress) => void;
}

interface Flight {
  readonly result: Promise<ImageRecord>;
  readonly controller: AbortController;
  readonly waiters: Set<Waiter>;
}

export function createImageCache(options: ImageCacheOptions): ImageCache {
  const { directory, clock, log } = options;
  const records = new Map<string, ImageRecord>();
  const flights = new Map<string, Flight>();
  let loading: Promise<void> | undefined;
  const loaded = (): Promise<void> => {
    loading ??= load(options, records).catch((error: unknown) => {
      loading = undefined; // a disk that was full or away may be back at the next call
      throw diskError(error, `open the image cache ${directory}`);
    });
    return loading;
  };

  /** The published image of this key, if its file is still as it was left. */
  const published = async (key: string): Promise<ImageRecord | undefined> => {
    const record = records.get(key);
    if (record === undefined || (await unchanged(record))) return record;
    log.warn('an image of the cache was changed or removed by others; fetching it again', {
      image: record.names.join(),
      path: record.path,
    });
    records.delete(key);
    return undefined;
  };

  // One write after the other, each of what is true by then: two callers may name one image at once.
  let saving = Promise.resolve();
  const save = (key: string): Promise<void> => {
    saving = saving.then(async () => {
      const record = records.get(key);
      if (record !== undefined) await writeSmallFile(recordPath(directory, key), JSON.stringify(record));
    });
    const saved = saving;
    saving = saving.catch(() => {}); // told to the one who asked; the next write stands for itself
    return saved;
  };
  const handOut = async (record: ImageRecord, name: string): Promise<CachedImage> => {
    for (const key of giveName(records, record.key, name)) {
      await save(key).catch((error: unknown) => {
        throw diskError(error, `keep image "${name}"`);
      });
    }
    return toCachedImage(record);
  };

  const fly = (name: string, image: ImageSpec, key: string): Flight => {
    const controller = new AbortController();
    const waiters = new Set<Waiter>();
    const tell = throttled(clock, (progress) => {
      for (const waiter of waiters) waiter.onProgress?.(progress);
    });
    const result = fetchImage({ name, image, key, signal: controller.signal, tell }, options, records).finally(() => {
      flights.delete(key);
    });
    result.catch(() => {}); // every waiter hears of it; the last one may have left
    return { result, controller, waiters };
  };

  return {
    async ensure(name, image, { signal, onProgress }) {
      const aborted = (): DriverError => new DriverError('Aborted', `fetching image "${name}" was given up`);
      diskFormat(name, image); // before anything is fetched
      await loaded();
      const key = keyOf(image);
      for (;;) {
        if (signal.aborted) throw aborted();
        let flight = flights.get(key);
        if (flight?.controller.signal.aborted) {
          await flight.result.catch(() => {}); // it is clearing up; its outcome is not ours
          continue;
        }
        if (flight === undefined) {
          const record = await published(key);
          if (record !== undefined) return handOut(record, name);
          flight = flights.get(key); // another caller may have begun while we looked
          if (flight === undefined) {
            flight = fly(name, image, key);
            flights.set(key, flight);
          }
        }
        const record = await waitFor(flight, { signal, aborted, ...(onProgress ? { onProgress } : {}) });
        return handOut(record, name);
      }
    },
    async list() {
      await loaded();
      return [...records.values()].flatMap(({ names, digest, sizeBytes }) =>
        names.map((name) => ({ name, digest, sizeBytes })),
      );
    },
  };
}

/** The flight's result, or `Aborted` as soon as this waiter leaves; the last one to leave ends the flight. */
async function waitFor(
  flight: Flight,
  {
    signal,
    aborted,
    onProgress,
  }: { signal: AbortSignal; aborted: () => DriverError; onProgress?: Waiter['onProgress'] },
): Promise<ImageRecord> {
  const waiter: Waiter = onProgress ? { onProgress } : {};
  flight.waiters.add(waiter);
  let leave = (): void => {};
  const left = new Promise<void>((resolve) => {
    leave = () => resolve();
  });
  signal.addEventListener('abort', leave, { once: true });
  try {
    const record = await Promise.race([flight.result, left]);
    if (record) return record;
    flight.waiters.delete(waiter);
    if (flight.waiters.size === 0) {
      flight.controller.abort();
      await flight.result.catch(() => {}); // so that nothing of it is left when the caller hears of the end
    }
    throw aborted();
  } finally {
    flight.waiters.delete(waiter);
    signal.removeEventListener('abort', leave);
  }
}

interface Job {
  readonly name: string;
  readonly image: ImageSpec;
  readonly key: string;
  readonly signal: AbortSignal;
  readonly tell: (progress: ImageProgress) => void;
}

async function fetchImage(
  job: Job,
  options: ImageCacheOptions,
  records: Map<string, ImageRecord>,
): Promise<ImageRecord> {
  const { name, image, key } = job;
  const { directory, log } = options;
  const maxBytes = options.maxBytes ?? 64 * gibibyte;
  const partial = join(directory, `${key}.partial`);
  const path = await targetPath(image, key, options);
  const temporary = `${path}.unpacking`;
  try {
    log.info('fetching image', { image: name, source: printableUrl(image.source) });
    const written = await fetchWhole(job, { ...options, maxBytes }, { partial, temporary });
    job.tell({ stage: 'checking', doneBytes: 0, totalBytes: written.sizeBytes });
    const virtualSizeBytes = await passGate(temporary, job, options);
    job.tell({ stage: 'checking', doneBytes: written.sizeBytes, totalBytes: written.sizeBytes });
    if (job.signal.aborted) throw new DriverError('Aborted', `fetching image "${name}" was given up`);
    await chmod(temporary, 0o444);
    await publish(temporary, path);
    const { mtimeMs } = await stat(path);
    const record: ImageRecord = {
      key,
      names: [...(records.get(key)?.names ?? [])],
      path,
      format: diskFormat(name, image),
      digest: written.digest,
      virtualSizeBytes,
      sizeBytes: written.sizeBytes,
      changedAtMs: mtimeMs,
    };
    if (image.localPath !== undefined) {
      await linkAt(path, image.localPath, name, records).catch(async (error: unknown) => {
        await rm(path, { force: true });
        throw error;
      });
    }
    await writeSmallFile(recordPath(directory, key), JSON.stringify(record));
    records.set(key, record);
    await dropPartial(directory, key);
    log.info('image is ready', { image: name, digest: record.digest, bytes: record.sizeBytes });
    return record;
  } catch (error) {
    const failure = diskError(error, `fetch image "${name}"`);
    await rm(temporary, { force: true });
    // Only a break on the way leaves bytes worth keeping; what was judged bad, or filled the disk, goes at once.
    const resumable = failure.code === 'Aborted' || failure.code === 'ImageUnavailable';
    if (!resumable) await dropPartial(directory, key);
    throw failure;
  }
}

interface Places {
  readonly partial: string;
  readonly temporary: string;
}

type SizedOptions = ImageCacheOptions & { readonly maxBytes: number };

/** Fetches and unpacks in one go; begins anew when the server's file changed under it. */
async function fetchWhole(job: Job, options: SizedOptions, places: Places) {
  for (let restarts = 0; ; restarts++) {
    try {
      return await fetchOnce(job, options, places);
    } catch (error) {
      if (!(error instanceof SourceChanged)) throw error;
      await dropPartial(options.directory, job.key);
      options.log.warn('the download of an image begins anew', { image: job.name, reason: error.message });
      if (restarts === restartsMax) {
        throw new DriverError(
          'ImageUnavailable',
          `cannot fetch ${printableUrl(job.image.source)}: ${error.message}, ${restarts + 1} times; try again later`,
          error,
        );
      }
    }
  }
}

async function fetchOnce(job: Job, options: SizedOptions, { temporary }: Places) {
  const { image, signal, tell } = job;
  const sourceHash = createHash('sha256');
  let sourceBytes = 0;
  let sourceTotal: number | undefined;
  const stage = image.decompress === 'none' ? 'downloading' : 'unpacking';
  const onVersion = (version: SourceVersion): void => {
    sourceTotal = version.totalBytes;
  };
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const chunk of sourceOf(job, options, onVersion)) {
      sourceBytes += chunk.length;
      if (sourceBytes > options.maxBytes) throw tooLarge(image.source, sourceBytes, { bytesMax: options.maxBytes });
      sourceHash.update(chunk);
      tell({
        stage: 'downloading',
        doneBytes: sourceBytes,
        ...(sourceTotal === undefined ? {} : { totalBytes: sourceTotal }),
      });
      yield chunk;
    }
  }
  const written = await writeImage(
    temporary,
    unpack(counted(), image.decompress, signal),
    {
      bytesMax: options.maxBytes,
      // Measured against the whole source where its size is known: zeros at a disk's beginning are no bomb.
      allowedBytes: () => Math.max(ratioFloorBytes, ratioMax * (sourceTotal ?? sourceBytes)),
    },
    (bytes) => {
      if (stage === 'unpacking' && sourceBytes === sourceTotal) tell({ stage, doneBytes: bytes });
    },
  );
  const checksum = `sha256:${sourceHash.digest('hex')}`;
  if (image.checksum !== undefined && image.checksum !== checksum) {
    throw new DriverError(
      'ImageChecksumMismatch',
      `image "${job.name}" from ${printableUrl(image.source)} has ${checksum}, not ${image.checksum}: the file is damaged or another one; check source and checksum`,
    );
  }
  return written;
}

/** What is left of an earlier try first, then the rest from the server; every new byte is kept in case this breaks too. */
async function* sourceOf(
  job: Job,
  options: SizedOptions,
  tellVersion: (version: SourceVersion) => void,
): AsyncGenerator<Uint8Array> {
  const { image, key, signal } = job;
  const context: SourceContext = {
    fetch: options.fetch,
    clock: options.clock,
    prng: options.prng,
    signal,
    stallTimeoutMs: options.stallTimeoutMs ?? 30_000,
    attemptsMax: options.attemptsMax ?? 5,
    bytesMax: options.maxBytes,
    checksummed: image.checksum !== undefined,
  };
  if (image.source.startsWith('file:')) {
    await refuseOutsideRoots(localPathOf(image.source), options, `image "${job.name}" comes from`);
    yield* readLocalFile(image.source, context, async (version) => tellVersion(version));
    return;
  }
  const partialPath = join(options.directory, `${key}.partial`);
  const known = await readIfThere(partialRecordPath(options.directory, key)).then((text) =>
    text === undefined ? undefined : readPartialRecord(text),
  );
  const bootId = await readIfThere('/proc/sys/kernel/random/boot_id').then((text) => text?.trim() ?? '');
  const resumes = known !== undefined && known.source === image.source && known.bootId === bootId;
  const partial = await open(
    partialPath,
    constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | (resumes ? 0 : constants.O_TRUNC),
    0o600,
  );
  try {
    let offset = 0;
    if (resumes) {
      const { validator, totalBytes } = known;
      tellVersion({ validator, ...(totalBytes === undefined ? {} : { totalBytes }) });
      for (;;) {
        const { bytesRead, buffer } = await partial.read(Buffer.allocUnsafe(1024 * 1024), 0, 1024 * 1024, offset);
        if (bytesRead === 0) break;
        offset += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
      if (offset > 0) options.log.info('going on with a broken download', { image: job.name, offset });
    }
    let keeps = resumes && offset > 0;
    const from = {
      offset,
      known:
        keeps && known !== undefined
          ? { validator: known.validator, ...(known.totalBytes === undefined ? {} : { totalBytes: known.totalBytes }) }
          : {},
    };
    const rest = readHttp(image.source, from, context, async (version) => {
      tellVersion(version);
      keeps = version.validator !== undefined;
      if (version.validator === undefined) return;
      const record = {
        source: image.source,
        bootId,
        validator: version.validator,
        ...(version.totalBytes === undefined ? {} : { totalBytes: version.totalBytes }),
      };
      await writeSmallFile(partialRecordPath(options.directory, key), JSON.stringify(record));
    });
    for await (const chunk of rest) {
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

async function passGate(path: string, { name, image }: Job, options: ImageCacheOptions): Promise<number> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const verdict = await checkImage(file, diskFormat(name, image), {
      virtualBytesMax: options.maxVirtualBytes ?? 16 * 1024 * gibibyte,
    });
    if (verdict.ok) return verdict.virtualSizeBytes;
    throw new DriverError(
      'ImageInvalid',
      `image "${name}" from ${printableUrl(image.source)} is refused: ${verdict.reason}`,
    );
  } finally {
    await file.close();
  }
}

/** What the cache tells images apart by. Another source or checksum is another image: guests of the old one keep theirs. */
function keyOf(image: ImageSpec): string {
  const parts = [image.source, image.checksum ?? '', image.decompress, image.format, image.localPath ?? ''];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}

/** In the cache; or, for an image with a `localPath`, hidden beside that, on the disk its owner chose. */
async function targetPath(image: ImageSpec, key: string, options: ImageCacheOptions): Promise<string> {
  if (image.localPath === undefined) return join(options.directory, `${key}.img`);
  const path = resolve(image.localPath);
  await refuseOutsideRoots(path, options, 'an image is to be kept at');
  await mkdir(dirname(path), { recursive: true });
  await refuseOutsideRoots(dirname(path), options, 'an image is to be kept in'); // now that links in it can be seen
  return join(dirname(path), `.${basename(path).slice(0, 150)}.${key}.img`);
}

/** Looks through links: what counts is where the file really is. */
async function refuseOutsideRoots(
  path: string,
  { directory, fileRoots }: ImageCacheOptions,
  what: string,
): Promise<void> {
  const real = await realpath(path).catch(() => resolve(path)); // not there yet
  for (const root of [directory, ...fileRoots]) {
    const realRoot = await realpath(root).catch(() => resolve(root));
    if (real === realRoot || real.startsWith(realRoot.endsWith(sep) ? realRoot : realRoot + sep)) return;
  }
  throw new DriverError(
    'ImageUnavailable',
    `${what} ${path}, which this host does not open to images; put it under ${[directory, ...fileRoots].join(' or ')}, or allow its folder in the agent's configuration`,
  );
}

/**
 * Gives the image its `localPath` as a second name of the same file. A later version takes the name over; the file under the
 * hidden name stays as it is, for the guests upon it. A file that is not ours is never replaced.
 */
async function linkAt(
  path: string,
  localPath: string,
  name: string,
  records: ReadonlyMap<string, ImageRecord>,
): Promise<void> {
  const there = await stat(localPath).catch(() => undefined);
  if (there) {
    const ours = await Promise.all(
      [...records.values()].map(async (record) => (await stat(record.path).catch(() => undefined))?.ino),
    );
    const same = (await stat(path)).ino === there.ino;
    if (same) return;
    if (!ours.includes(there.ino)) {
      throw new DriverError(
        'ImageInvalid',
        `image "${name}" cannot be put at ${localPath}: there is a file already that Berth did not make; move it away, or set another localPath`,
      );
    }
  }
  const temporary = `${path}.link`;
  await rm(temporary, { force: true });
  await link(path, temporary);
  await rename(temporary, localPath);
}

/** Gives the name to this record and takes it from every other: a name belongs to its latest image only. */
function giveName(records: Map<string, ImageRecord>, key: string, name: string): string[] {
  const changed: string[] = [];
  for (const record of [...records.values()]) {
    const has = record.names.includes(name);
    if (has === (record.key === key)) continue;
    const names = has ? record.names.filter((one) => one !== name) : [...record.names, name];
    records.set(record.key, { ...record, names });
    changed.push(record.key);
  }
  return changed;
}

async function unchanged(record: ImageRecord): Promise<boolean> {
  const there = await stat(record.path).catch(() => undefined);
  return there?.isFile() === true && there.size === record.sizeBytes && there.mtimeMs === record.changedAtMs;
}

function toCachedImage({ path, format, digest, virtualSizeBytes }: ImageRecord): CachedImage {
  return { path, format, digest, virtualSizeBytes };
}

/** Takes over what an earlier run left whole and removes the rest. */
async function load({ directory, clock, log }: ImageCacheOptions, records: Map<string, ImageRecord>): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const entries = await readdir(directory);
  for (const entry of entries.filter((one) => /^[0-9a-f]{32}\.json$/.test(one))) {
    const record = readRecord(await readFile(join(directory, entry), 'utf8'));
    if (record !== undefined && entry === `${record.key}.json` && (await unchanged(record)))
      records.set(record.key, record);
    else await rm(join(directory, entry), { force: true });
  }
  const whole = new Set([...records.values()].map((record) => record.path));
  for (const entry of entries) {
    const path = join(directory, entry);
    const key =
      /^([0-9a-f]{32})\.(img|img\.unpacking|img\.link|partial|source\.json|json\.new|source\.json\.new)$/.exec(entry);
    if (key === null || whole.has(path)) continue;
    const resumable = key[2] === 'partial' || key[2] === 'source.json';
    if (resumable && clock.nowMs() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? 0) < partialAgeMsMax)
      continue;
    log.info('removing what an earlier run left half-done', { path });
    await rm(path, { force: true });
  }
}

function recordPath(directory: string, key: string): string {
  return join(directory, `${key}.json`);
}

function partialRecordPath(directory: string, key: string): string {
  return join(directory, `${key}.source.json`);
}

async function dropPartial(directory: string, key: string): Promise<void> {
  await rm(join(directory, `${key}.partial`), { force: true });
  await rm(partialRecordPath(directory, key), { force: true });
}

async function readIfThere(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined); // unreadable is as good as absent: fetch it whole
}

function throttled(clock: Clock, tell: (progress: ImageProgress) => void): (progress: ImageProgress) => void {
  let stage: string | undefined;
  let toldAtMs = 0;
  return (progress) => {
    const nowMs = clock.monotonicMs();
    const last = progress.doneBytes === progress.totalBytes;
    if (progress.stage === stage && !last && nowMs - toldAtMs < progressEveryMs) return;
    stage = progress.stage;
    toldAtMs = nowMs;
    tell(progress);
  };
}

function diskError(error: unknown, attempt: string): DriverError {
  if (error instanceof DriverError) return error;
  assert(error !== undefined, 'a failure has an error');
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG') {
    return new DriverError('DiskFull', `cannot ${attempt}: the disk is full; free some room and try again`, error);
  }
  return new DriverError('Internal', `cannot ${attempt}: ${describeError(error)}`, error);
}
