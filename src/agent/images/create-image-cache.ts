// The image cache of one host, in one directory of its own: each content once, under its digest. It never publishes an image
// that has not passed checksum and gate, never changes a published file, never removes one that a guest's disk uses, and never
// reads or writes outside its directory and `fileRoots`.
//
//   absent -> fetching (<key>.partial, <key>.unpacking) -> checking -> published (sha256-<digest>.img, <key>.json) -> removed, over budget
//                 \-> failed: .unpacking removed; .partial kept only if a later attempt can resume it

import { utimes } from 'node:fs/promises';
import type { ImageSpec } from '../../api/resources/image.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import { createPlaces } from '../../base/places.ts';
import { createSharedWork, type WorkCall } from '../../base/concurrency/shared-work.ts';
import { DriverError } from '../host/driver-error.ts';
import { type GuestCredentials, guestCredentialFor } from './credentials/image-credentials.ts';
import { type CleanWishes, ImageCleaner } from './clean-images.ts';
import { diskError } from './disk-error.ts';
import { diskFormat } from './disk-format.ts';
import type { FetchJob } from './fetch/fetch-image.ts';
import type { CachedImage, ImageCache, ImageProgress, ListedImage } from './image-cache.ts';
import type { ImageCacheOptions } from './image-cache-options.ts';
import type { ImageRecord } from './image-record.ts';
import { loadRecords } from './load-records.ts';
import { fetchAndPublish } from './publish-image.ts';
import { giveName, keyOf, recordPath, unchanged } from './record-files.ts';
import { Turns } from './turns.ts';
import { writeSmallFile } from './unpack/image-file.ts';

export interface HostImageCache extends ImageCache {
  /** Removes images that are not needed while the cache is over its budget. Never throws: what could not be removed is tried again next time. */
  clean(wanted: CleanWishes): Promise<void>;
}

const progressEveryMs = 100;
/**
 * How many images may receive bytes at the same time. Each may need the window of its compression, 128 MiB at most, so this limits
 * memory only: a server that sends nothing takes no place, and a slow one is given up.
 */
const unpackersMax = 32;

export function createImageCache(options: ImageCacheOptions): HostImageCache {
  return new FileImageCache(options);
}

class FileImageCache implements HostImageCache {
  readonly #options: ImageCacheOptions;
  readonly #records = new Map<string, ImageRecord>();
  readonly #flights = createSharedWork<ImageProgress, ImageRecord>();
  readonly #unpackers = createPlaces(unpackersMax);
  /** Publishing and removing files exclude each other: while one looks at a file, the other does not change it. */
  readonly #publishing = new Turns();
  /** Records are written one after the other, each with its latest content: two callers may name one image at once. */
  readonly #saving = new Turns();
  readonly #cleaner: ImageCleaner;
  #loading: Promise<void> | undefined;

  constructor(options: ImageCacheOptions) {
    this.#options = options;
    this.#cleaner = new ImageCleaner({
      options,
      records: this.#records,
      inTurn: this.#publishing,
      isFetching: (key) => this.#flights.has(key),
    });
  }

  async ensure(
    name: string,
    image: ImageSpec,
    { signal, onProgress, own }: Parameters<ImageCache['ensure']>[2],
  ): Promise<CachedImage> {
    const aborted = (): DriverError => new DriverError('Aborted', `fetching image "${name}" was given up`);
    diskFormat(name, image); // before anything is fetched
    await this.#loaded();
    const key = keyOf(image, usesOwn(image, own) ? own?.project : undefined);
    if (signal.aborted) throw aborted();
    this.#cleaner.noteRequested(key);
    const caller = { signal, ...(onProgress ? { onProgress } : {}) };
    const record = await this.#flights.join(key, caller, (flight) =>
      this.#fetchOnce({ name, image, key, own }, flight),
    );
    if (record === undefined) throw aborted();
    this.#cleaner.noteRequested(key);
    return this.#handOut(record, name);
  }

  async list(): Promise<readonly ListedImage[]> {
    await this.#loaded();
    return [...this.#records.values()].flatMap((record) => {
      const { names, digest, sizeBytes, sourceChecksum } = record;
      const guests = this.#cleaner.guestsOf(record);
      const more = {
        ...(sourceChecksum === undefined ? {} : { checksum: sourceChecksum }),
        ...(guests === 0 ? {} : { guests }),
      };
      return names.map((name) => ({ name, digest, sizeBytes, ...more }));
    });
  }

  async clean(wanted: CleanWishes): Promise<void> {
    this.#cleaner.wishes = wanted;
    try {
      await this.#loaded();
    } catch (error) {
      this.#options.log.warn('cannot clean the image cache', { error: describeError(error) });
      return;
    }
    await this.#cleaner.clean();
  }

  #loaded(): Promise<void> {
    this.#loading ??= loadRecords(this.#options, this.#records).catch((error: unknown) => {
      this.#loading = undefined; // a disk that was full or absent may be back at the next call
      throw diskError(error, `open the image cache ${this.#options.directory}`);
    });
    return this.#loading;
  }

  async #fetchOnce(
    {
      name,
      image,
      key,
      own,
    }: Pick<FetchJob, 'name' | 'image' | 'key'> & { readonly own: GuestCredentials | undefined },
    { signal, tell }: WorkCall<ImageProgress>,
  ): Promise<ImageRecord> {
    const here = await this.#published(key);
    if (here !== undefined) return here;
    const credentialFor: FetchJob['credentialFor'] = async (source) =>
      guestCredentialFor(own, source) ?? this.#options.credentials?.(source);
    const job = { name, image, key, signal, credentialFor, tell: throttled(this.#options.clock, tell) };
    const record = await fetchAndPublish(job, {
      options: this.#options,
      records: this.#records,
      inTurn: this.#publishing,
      unpackers: this.#unpackers,
    });
    void this.#cleaner.clean();
    return record;
  }

  /** The published image of this key, if its file is unchanged. */
  async #published(key: string): Promise<ImageRecord | undefined> {
    const record = this.#records.get(key);
    if (record === undefined || (await unchanged(record))) return record;
    this.#options.log.warn('an image of the cache was changed or removed by others; fetching it again', {
      image: record.names.join(),
      path: record.path,
    });
    this.#records.delete(key);
    return undefined;
  }

  async #handOut(record: ImageRecord, name: string): Promise<CachedImage> {
    const { directory, clock } = this.#options;
    for (const key of giveName(this.#records, record.key, name)) {
      await this.#save(key).catch((error: unknown) => {
        throw diskError(error, `keep image "${name}"`);
      });
    }
    // Losing this time in a power cut only makes the image look older, so it is not synced.
    const now = new Date(clock.nowMs());
    await utimes(recordPath(directory, record.key), now, now).catch(() => {});
    return toCachedImage(record);
  }

  #save(key: string): Promise<void> {
    return this.#saving.run(async () => {
      const record = this.#records.get(key);
      if (record !== undefined) await writeSmallFile(recordPath(this.#options.directory, key), JSON.stringify(record));
    });
  }
}

/** Whether a credential of the guest's project is for one of the sources. What lies at a `localPath` is for all in any case. */
function usesOwn({ source, mirrors, localPath }: ImageSpec, own: GuestCredentials | undefined): boolean {
  if (localPath !== undefined) return false;
  return [source, ...(mirrors ?? [])].some((each) => guestCredentialFor(own, each) !== undefined);
}

function toCachedImage({ path, format, digest, virtualSizeBytes }: ImageRecord): CachedImage {
  return { path, format, digest, virtualSizeBytes };
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
