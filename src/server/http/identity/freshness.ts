// Whether this server has heard of what others have written lately. With a store of its own it always has. One that has heard nothing for a
// second asks the store before it trusts its cache with a question of access; when the store is silent, it answers nothing.

import { ApiError } from '../../../api/errors.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Cache } from '../../../core/state/cache.ts';
import type { Store } from '../../../store/store.ts';
import { newestRevision } from '../newest-revision.ts';

/** How long what was revoked elsewhere may still open something here. */
const silenceMsMax = 1_000;
const answerMsMax = 2_000;
/** A token that is not known here may have been made elsewhere a moment ago; strangers do not make us ask more often. */
const unknownEveryMs = 250;

export interface FreshnessParts {
  readonly store: Store;
  readonly cache: Cache;
  readonly clock: Clock;
}

export class Freshness {
  readonly #parts: FreshnessParts;
  readonly #forget: () => void;
  #heardAtMs = Number.NEGATIVE_INFINITY;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(parts: FreshnessParts) {
    this.#parts = parts;
    this.#forget = parts.cache.onRevision(() => this.#heard(parts.clock.monotonicMs()));
  }

  stop(): void {
    this.#forget();
  }

  /** No other server writes to the store. */
  get alone(): boolean {
    return this.#parts.store.exclusive === true;
  }

  get fresh(): boolean {
    return this.alone || this.#parts.clock.monotonicMs() - this.#heardAtMs <= silenceMsMax;
  }

  /** Whether asking once more may find a token that is not known here. */
  get mayAskAgain(): boolean {
    return !this.alone && this.#parts.clock.monotonicMs() - this.#askedAtMs >= unknownEveryMs;
  }

  /** Resolves when the cache has what was in the store at this moment. One question for all that wait. Throws `Unavailable`. */
  refresh(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const { store, cache, clock } = this.#parts;
    const askedAtMs = clock.monotonicMs();
    this.#askedAtMs = askedAtMs;
    const newest = await within(clock, newestRevision(store));
    await within(clock, this.#reached(newest));
    if (!cache.holds(newest)) throw silent();
    this.#heard(askedAtMs);
  }

  /** Never rejects; what waits in vain is left when its time is over. */
  #reached(revision: number): Promise<void> {
    const { cache } = this.#parts;
    if (cache.holds(revision)) return Promise.resolve();
    return new Promise((resolve) => {
      const forget = cache.onRevision(() => {
        if (!cache.holds(revision)) return;
        forget();
        resolve();
      });
    });
  }

  #heard(atMs: number): void {
    this.#heardAtMs = Math.max(this.#heardAtMs, atMs);
  }
}

function within<T>(clock: Clock, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(answerMsMax, () => reject(silent()));
    work.then(resolve, reject).finally(() => timer.cancel());
  });
}

function silent(): ApiError {
  return new ApiError(
    'Unavailable',
    'the store is silent, so it is not known whether this token still stands; try again',
  );
}
