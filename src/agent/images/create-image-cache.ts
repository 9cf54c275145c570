// The image cache of one host, in one directory of its own: each content once, under its digest. Never publishes what has not passed
// checksum and gate, never changes a published file, never removes one that a guest's disk lies upon, and never reads or writes outside
// its directory and `fileRoots`.
//
//   absent -> fetching (<key>.partial, <key>.unpacking) -> checking -> published (sha256-<digest>.img, <key>.json) -> removed, over budget
//                 \-> failed: .unpacking removed; .partial kept only where a later try can go on with it

import { createHash } from 'node:crypto';
import { link, mkdir, readdir, readFile, realpath, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { ImageSpec } from '../../api/resources/image.ts';
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { createPlaces, type Places } from '../../base/places.ts';
import type { Prng } from '../../base/prng.ts';
import { createSharedWork, type WorkCall } from '../../base/work/shared-work.ts';
import { DriverError } from '../host/driver-error.ts';
import { type CachedFile, chooseRemovals } from './choose-removals.ts';
import { diskFormat } from './disk-format.ts';
import { dropPartial, type FetchedImage, fetchImage, type FetchJob, type FetchOptions } from './fetch/fetch-image.ts';
import { type HttpGet, printableUrl } from './fetch/http-get.ts';
import type { CachedImage, ImageCache, ImageProgress } from './image-cache.ts';
import { publish, writeSmallFile } from './unpack/image-file.ts';
import { defaultVirtualBytesMax } from './unpack/image-gate.ts';
import { type ImageRecord, readRecord } from './image-record.ts';
import { type FoundReferences, findImageReferences, type ImageReference } from './image-references.ts';
import type { RemoteFile } from './fetch/image-source.ts';

export interface ImageCacheOptions {
  /** For this cache alone; made with mode 0700. */
  readonly directory: string;
  /**
   * Where `file:` sources and `localPath` may lie, besides `directory`. An image's owner need not be the host's: without this
   * bound an image `file:///etc/shadow` would show that file to a guest. `['/']` allows all.
   */
  readonly fileRoots: readonly string[];
  /** Where guests live, one folder each: their disks say which images are in use. Asked for each time; default: nowhere. */
  readonly guestRoots?: () => Promise<readonly string[]>;
  /** What published images and half downloads may take of the disk. Default: any amount. */
  readonly bytesMax?: number;
  readonly get: HttpGet;
  /** Where the control plane keeps what was uploaded to it. */
  readonly uploaded?: (source: string) => RemoteFile;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Of one image, packed and unpacked. */
  readonly maxBytes?: number;
  /** The largest disk an image may show to a guest. */
  readonly maxVirtualBytes?: number;
  readonly stallTimeoutMs?: number;
  readonly slowWindowMs?: number;
  readonly slowBytesMin?: number;
  readonly attemptsMax?: number;
  readonly checksumsRequired?: boolean;
  /** Whether the program unpacks zstd. Default: where there is one. */
  readonly zstdProgram?: boolean;
}

export interface HostImageCache extends ImageCache {
  /** Removes what nobody needs while the cache is over its budget. Never throws: what could not be removed is tried again next time. */
  clean(wanted: CleanWishes): Promise<void>;
}

export interface CleanWishes {
  /** Of the images that the control plane has, those that stay. */
  readonly kept: readonly ImageSpec[];
}

const gibibyte = 1024 ** 3;
/** Half downloads that nobody went on with. */
const partialAgeMsMax = 24 * 60 * 60 * 1000;
const progressEveryMs = 100;
/**
 * Images of which bytes come at the same time. Each may take the window of its packing, 128 MiB at most, so this bounds memory alone: a
 * server that says nothing holds no place, and one that drips is given up.
 */
const unpackersMax = 32;
/** From being handed out until the guest's record names it, an image is nobody's: ten times what the making of a disk may take. */
const handedOutMs = 10 * 60 * 1000;

export function createImageCache(options: ImageCacheOptions): HostImageCache {
  const { directory, clock, log } = options;
  const records = new Map<string, ImageRecord>();
  const flights = createSharedWork<ImageProgress, ImageRecord>();
  const unpackers = createPlaces(unpackersMax);
  /** When each key was last asked for, by the monotonic clock. */
  const askedAtMs = new Map<string, number>();
  let references: readonly ImageReference[] = [];
  let wishes: CleanWishes | undefined;
  let loading: Promise<void> | undefined;
  const loaded = (): Promise<void> => {
    loading ??= load(options, records).catch((error: unknown) => {
      loading = undefined; // a disk that was full or away may be back at the next call
      throw diskError(error, `open the image cache ${directory}`);
    });
    return loading;
  };
  // Giving files their names and taking them away, one after the other: what one looks at, no other changes.
  const inTurn = turns();

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
  const saveInTurn = turns();
  const save = (key: string): Promise<void> =>
    saveInTurn(async () => {
      const record = records.get(key);
      if (record !== undefined) await writeSmallFile(recordPath(directory, key), JSON.stringify(record));
    });
  const handOut = async (record: ImageRecord, name: string): Promise<CachedImage> => {
    for (const key of giveName(records, record.key, name)) {
      await save(key).catch((error: unknown) => {
        throw diskError(error, `keep image "${name}"`);
      });
    }
    // Lost in a power cut it only makes the image look older: not worth a sync.
    const now = new Date(clock.nowMs());
    await utimes(recordPath(directory, record.key), now, now).catch(() => {});
    return toCachedImage(record);
  };

  const fly = async (
    { name, image, key }: Pick<FetchJob, 'name' | 'image' | 'key'>,
    { signal, tell }: WorkCall<ImageProgress>,
  ): Promise<ImageRecord> => {
    const here = await published(key);
    if (here !== undefined) return here;
    const job = { name, image, key, signal, tell: throttled(clock, tell) };
    const record = await fetchAndPublish(job, { options, records, inTurn, unpackers });
    cleanLater();
    return record;
  };

  const clean = (): Promise<void> =>
    inTurn(async () => {
      if (wishes === undefined) return; // nobody has said yet what must stay
      const found = await findReferences(options);
      if (!found.complete) {
        log.warn('cannot tell which images are in use, so none is removed', { reason: found.reason });
        return;
      }
      ({ references } = found);
      if (options.bytesMax === undefined) return;
      const keptKeys = new Set(wishes.kept.map(keyOf));
      const recent = (key: string): boolean =>
        flights.has(key) || clock.monotonicMs() - (askedAtMs.get(key) ?? -Infinity) < handedOutMs;
      const files = await filesOf(records, { directory, references, kept: (key) => keptKeys.has(key) || recent(key) });
      const otherBytes = await partialBytes(directory);
      for (const { path, allocatedBytes } of chooseRemovals(files, { bytesMax: options.bytesMax, otherBytes })) {
        const gone = [...records.values()].filter((record) => record.path === path);
        if (gone.some(({ key }) => recent(key))) continue; // asked for while we looked
        for (const { key } of gone) {
          records.delete(key);
          askedAtMs.delete(key);
        }
        log.info('removing an image that no guest uses', {
          image: gone.flatMap(({ names }) => names).join(),
          path,
          bytes: allocatedBytes,
        });
        // The records first: whoever dies here leaves a file that the next start removes.
        for (const { key } of gone) await rm(recordPath(directory, key), { force: true });
        await rm(path, { force: true });
      }
    }).catch((error: unknown) => log.warn('cannot clean the image cache', { error: describeError(error) }));
  const cleanLater = (): void => void clean();

  return {
    async ensure(name, image, { signal, onProgress }) {
      const aborted = (): DriverError => new DriverError('Aborted', `fetching image "${name}" was given up`);
      diskFormat(name, image); // before anything is fetched
      await loaded();
      const key = keyOf(image);
      if (signal.aborted) throw aborted();
      askedAtMs.set(key, clock.monotonicMs());
      const caller = { signal, ...(onProgress ? { onProgress } : {}) };
      const record = await flights.join(key, caller, (flight) => fly({ name, image, key }, flight));
      if (record === undefined) throw aborted();
      askedAtMs.set(key, clock.monotonicMs());
      return handOut(record, name);
    },
    async list() {
      await loaded();
      return [...records.values()].flatMap((record) => {
        const { names, digest, sizeBytes, sourceChecksum } = record;
        const guests = references.filter((reference) => liesUpon(reference, record)).length;
        const more = {
          ...(sourceChecksum === undefined ? {} : { checksum: sourceChecksum }),
          ...(guests === 0 ? {} : { guests }),
        };
        return names.map((name) => ({ name, digest, sizeBytes, ...more }));
      });
    },
    async clean(wanted) {
      wishes = wanted;
      try {
        await loaded();
      } catch (error) {
        log.warn('cannot clean the image cache', { error: describeError(error) });
        return;
      }
      await clean();
    },
  };
}

/** Runs what it is given one after the other, each after the one before has ended, however that ended. */
function turns(): <T>(act: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (act) => {
    const turn = last.then(act);
    last = turn.catch(() => {}); // told to the one who asked
    return turn;
  };
}

type Turns = ReturnType<typeof turns>;

async function fetchAndPublish(
  job: FetchJob,
  {
    options,
    records,
    inTurn,
    unpackers,
  }: {
    readonly options: ImageCacheOptions;
    readonly records: Map<string, ImageRecord>;
    readonly inTurn: Turns;
    readonly unpackers: Places;
  },
): Promise<ImageRecord> {
  const { name, image, key } = job;
  const { directory, log } = options;
  let temporary = join(directory, `${key}.unpacking`);
  try {
    const hidden = await hiddenPath(image, key, options);
    if (hidden !== undefined) temporary = `${hidden}.unpacking`; // on the disk where it is to stay
    log.info('fetching image', { image: name, source: printableUrl(image.source) });
    const fetched = await fetchImage(job, temporary, fetchOptions(options, unpackers));
    const record = await inTurn(() => publishOnce(job, { temporary, hidden, fetched }, { directory, records }));
    await dropPartial(directory, key);
    const { digest, sizeBytes, sourceChecksum } = record;
    log.info('image is ready', { image: name, digest, bytes: sizeBytes, checksum: sourceChecksum });
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

function fetchOptions(options: ImageCacheOptions, unpackers: Places): FetchOptions {
  const { directory, get, uploaded, clock, prng, log } = options;
  return {
    ...{ directory, get, clock, prng, log, unpackers },
    ...(uploaded === undefined ? {} : { uploaded }),
    ...(options.zstdProgram === undefined ? {} : { zstdProgram: options.zstdProgram }),
    allowFile: (path) => refuseOutsideRoots(path, options, 'an image comes from'),
    maxBytes: options.maxBytes ?? 64 * gibibyte,
    maxVirtualBytes: options.maxVirtualBytes ?? defaultVirtualBytesMax,
    stallTimeoutMs: options.stallTimeoutMs ?? 30_000,
    slowWindowMs: options.slowWindowMs ?? 30_000,
    slowBytesMin: options.slowBytesMin ?? 256 * 1024, // 9 kB/s: a gigabyte in a day
    attemptsMax: options.attemptsMax ?? 5,
    checksumsRequired: options.checksumsRequired ?? false,
  };
}

interface ToPublish {
  readonly temporary: string;
  /** For an image with a `localPath`: its name beside that. */
  readonly hidden: string | undefined;
  readonly fetched: FetchedImage;
}

/** Gives the checked file its name, or another name to the same content where that is here already. */
async function publishOnce(
  { name, image, key }: FetchJob,
  { temporary, hidden, fetched }: ToPublish,
  { directory, records }: { readonly directory: string; readonly records: Map<string, ImageRecord> },
): Promise<ImageRecord> {
  const path = hidden ?? join(directory, `${fetched.digest.replace(':', '-')}.img`);
  const twin = await twinOf(fetched.digest, path, records);
  // Beside its record the name becomes durable with that: a record without its image is none.
  const giveItsName = hidden === undefined ? rename : publish;
  if (twin === undefined || (twin !== path && !(await linked(twin, path)))) await giveItsName(temporary, path);
  else await rm(temporary, { force: true });
  const { mtimeMs } = await stat(path);
  const record: ImageRecord = {
    key,
    names: [...(records.get(key)?.names ?? [])],
    path,
    format: diskFormat(name, image),
    ...fetched,
    changedAtMs: mtimeMs,
  };
  if (image.localPath !== undefined) {
    await linkAt(path, image.localPath, name, records).catch(async (error: unknown) => {
      if (twin !== path) await rm(path, { force: true });
      throw error;
    });
  }
  await writeSmallFile(recordPath(directory, key), JSON.stringify(record));
  records.set(key, record);
  return record;
}

/** A file with this content that is as it was left; `path` itself where that is one. */
async function twinOf(
  digest: string,
  path: string,
  records: ReadonlyMap<string, ImageRecord>,
): Promise<string | undefined> {
  const same = [...records.values()].filter((record) => record.digest === digest);
  for (const record of same.toSorted((a, b) => Number(b.path === path) - Number(a.path === path)))
    if (await unchanged(record)) return record.path;
  return undefined;
}

/** False where the file system has no room for a second name: another disk, or too many names. */
async function linked(from: string, to: string): Promise<boolean> {
  const temporary = `${to}.link`;
  try {
    await rm(temporary, { force: true });
    await link(from, temporary);
    await rename(temporary, to);
    await rm(temporary, { force: true }); // two names of one file, as an agent that died here leaves, are not renamed (rename(2))
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EXDEV' || code === 'EMLINK' || code === 'EPERM' || code === 'ENOTSUP') return false;
    throw error;
  }
}

async function findReferences({ guestRoots }: ImageCacheOptions): Promise<FoundReferences> {
  try {
    return await findImageReferences((await guestRoots?.()) ?? []);
  } catch (error) {
    return { complete: false, reason: describeError(error) };
  }
}

function liesUpon(reference: ImageReference, { path, digest }: ImageRecord): boolean {
  return reference.paths.includes(path) || reference.digest === digest;
}

interface Facts {
  readonly directory: string;
  readonly references: readonly ImageReference[];
  readonly kept: (key: string) => boolean;
}

/** Every published file of the cache's own directory, once, with what is known of it. */
async function filesOf(
  records: ReadonlyMap<string, ImageRecord>,
  { directory, references, kept }: Facts,
): Promise<CachedFile[]> {
  const files = new Map<string, CachedFile>();
  for (const record of records.values()) {
    if (dirname(record.path) !== directory) continue; // where its owner chose the place, its owner removes it
    const there = await stat(record.path).catch(() => undefined);
    if (there === undefined) continue; // the next one who asks for it finds out
    const asked = await stat(recordPath(directory, record.key)).catch(() => undefined);
    const before = files.get(record.path);
    files.set(record.path, {
      path: record.path,
      allocatedBytes: there.blocks * 512,
      usedAtMs: Math.max(asked?.mtimeMs ?? 0, before?.usedAtMs ?? 0),
      guests: references.filter((reference) => liesUpon(reference, record)).length,
      kept: kept(record.key) || (before?.kept ?? false),
    });
  }
  return [...files.values()];
}

async function partialBytes(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(directory)) {
    if (!/\.(partial|unpacking)$/.test(entry)) continue;
    bytes += ((await stat(join(directory, entry)).catch(() => undefined))?.blocks ?? 0) * 512;
  }
  return bytes;
}

/** What the cache tells images apart by. Another source or checksum is another image: guests of the old one keep theirs. */
function keyOf(image: ImageSpec): string {
  const parts = [image.source, image.checksum ?? '', image.decompress, image.format, image.localPath ?? ''];
  if (image.sizeBytes !== undefined) parts.push(String(image.sizeBytes));
  if (image.source.startsWith('oci:')) parts.push(image.architecture); // one name, a content for each
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, keyLength);
}

/** For an image with a `localPath`: hidden beside that, on the disk its owner chose. */
async function hiddenPath(image: ImageSpec, key: string, options: ImageCacheOptions): Promise<string | undefined> {
  if (image.localPath === undefined) return undefined;
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
    `${what} ${path}, which this host does not open to images; put it under ${[directory, ...fileRoots].join(' or ')}, or name its folder in imageRoots of the agent's configuration`,
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

/** Takes over what an earlier run left whole and removes the rest, but nothing that a guest may lie upon. */
async function load(options: ImageCacheOptions, records: Map<string, ImageRecord>): Promise<void> {
  const { directory, clock, log } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const entries = await readdir(directory);
  for (const entry of entries.filter((one) => /^[0-9a-f]{32}\.json$/.test(one))) {
    const record = readRecord(await readFile(join(directory, entry), 'utf8'));
    if (record !== undefined && entry === `${record.key}.json` && (await unchanged(record)))
      records.set(record.key, record);
    else await rm(join(directory, entry), { force: true });
  }
  const whole = new Set([...records.values()].map((record) => record.path));
  let found: FoundReferences | undefined;
  for (const entry of entries) {
    const path = join(directory, entry);
    const kind = leftover.exec(entry)?.[1];
    if (kind === undefined || whole.has(path)) continue;
    // Nobody goes on with the download of an image that is here.
    const resumable = (kind === 'partial' || kind === 'source.json') && !records.has(entry.slice(0, keyLength));
    if (resumable && clock.nowMs() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? 0) < partialAgeMsMax)
      continue;
    if (kind === 'img') {
      found ??= await findReferences(options);
      const digest = entry.replace(/^sha256-([0-9a-f]{64})\.img$/, 'sha256:$1');
      if (!found.complete || found.references.some((one) => one.paths.includes(path) || one.digest === digest)) {
        log.warn('an image of the cache has lost its record; it stays, for a guest may need it', { path });
        continue;
      }
    }
    log.info('removing what an earlier run left half-done', { path });
    await rm(path, { force: true });
  }
}

const keyLength = 32;

/** Files of the cache's own making, by what they end in. Earlier versions named images by their key. */
const leftover =
  /^(?:[0-9a-f]{32}|sha256-[0-9a-f]{64})\.(img|unpacking|img\.unpacking|img\.link|partial|source\.json|json\.new|source\.json\.new)$/;

function recordPath(directory: string, key: string): string {
  return join(directory, `${key}.json`);
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
