// Removes images while the cache is over its budget: images that no guest uses, that the control plane does not keep, and that
// were not requested lately.

import { rm } from 'node:fs/promises';
import type { ImageSpec } from '../../api/resources/image.ts';
import { describeError } from '../../base/log.ts';
import { type CachedFile, chooseRemovals } from './choose-removals.ts';
import type { ImageCacheOptions } from './image-cache-options.ts';
import type { ImageRecord } from './image-record.ts';
import type { ImageReference } from './image-references.ts';
import { filesOf, findReferences, liesUpon, partialBytes } from './images-in-use.ts';
import { keyOf, recordPath } from './record-files.ts';
import type { Turns } from './turns.ts';

export interface CleanWishes {
  /** Of the images that the control plane has, those that stay. */
  readonly kept: readonly ImageSpec[];
}

export interface CleanerParts {
  readonly options: ImageCacheOptions;
  readonly records: Map<string, ImageRecord>;
  /** Publishing and removing files exclude each other. */
  readonly inTurn: Turns;
  /** Whether an image is being fetched. */
  readonly isFetching: (key: string) => boolean;
}

/** An image that was requested is kept this long, until its guest's record names it: ten times what making a disk may take. */
const requestedMs = 10 * 60 * 1000;

export class ImageCleaner {
  readonly #parts: CleanerParts;
  /** When each key was last requested, by the monotonic clock. */
  readonly #requestedAtMs = new Map<string, number>();
  #references: readonly ImageReference[] = [];
  #wishes: CleanWishes | undefined;

  constructor(parts: CleanerParts) {
    this.#parts = parts;
  }

  set wishes(wishes: CleanWishes) {
    this.#wishes = wishes;
  }

  noteRequested(key: string): void {
    this.#requestedAtMs.set(key, this.#parts.options.clock.monotonicMs());
  }

  /** How many guests used this image when the cache was last cleaned. */
  guestsOf(record: ImageRecord): number {
    return this.#references.filter((reference) => liesUpon(reference, record)).length;
  }

  /** Never throws: what could not be removed is tried again next time. */
  async clean(): Promise<void> {
    const { inTurn, options } = this.#parts;
    await inTurn
      .run(() => this.#cleanNow())
      .catch((error: unknown) => options.log.warn('cannot clean the image cache', { error: describeError(error) }));
  }

  async #cleanNow(): Promise<void> {
    const { options, records } = this.#parts;
    const { directory, bytesMax, log } = options;
    if (this.#wishes === undefined) return; // the control plane has not said yet which images stay
    const found = await findReferences(options);
    if (!found.complete) {
      log.warn('cannot tell which images are in use, so none is removed', { reason: found.reason });
      return;
    }
    const { references } = found;
    this.#references = references;
    if (bytesMax === undefined) return;
    const keptKeys = new Set(this.#wishes.kept.map((image) => keyOf(image)));
    const kept = (key: string): boolean => keptKeys.has(key) || this.#isRecent(key);
    const files = await filesOf(records, { directory, references, kept });
    const otherBytes = await partialBytes(directory);
    for (const file of chooseRemovals(files, { bytesMax, otherBytes })) await this.#remove(file);
  }

  async #remove({ path, allocatedBytes }: CachedFile): Promise<void> {
    const { records, options } = this.#parts;
    const gone = [...records.values()].filter((record) => record.path === path);
    if (gone.some(({ key }) => this.#isRecent(key))) return; // requested since the files were listed
    for (const { key } of gone) {
      records.delete(key);
      this.#requestedAtMs.delete(key);
    }
    options.log.info('removing an image that no guest uses', {
      image: gone.flatMap(({ names }) => names).join(),
      path,
      bytes: allocatedBytes,
    });
    // The records first: an agent that dies here leaves a file that the next start removes.
    for (const { key } of gone) await rm(recordPath(options.directory, key), { force: true });
    await rm(path, { force: true });
  }

  #isRecent(key: string): boolean {
    const { isFetching, options } = this.#parts;
    return isFetching(key) || options.clock.monotonicMs() - (this.#requestedAtMs.get(key) ?? -Infinity) < requestedMs;
  }
}
