// Compaction: removes the store's history beyond an age and a number of revisions, so that its log does not grow for ever. Current entries
// stay; a watch from an older revision gets `Compacted`, and its client lists again. It never decides anything.

import { type Buggify, neverBuggify } from '../../base/buggify.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Store } from '../../store/store.ts';

export interface CompactionParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** The newest revision that is known to be in the store. */
  readonly revision: () => number;
  /** One of several does it, as thrift. */
  readonly leads: () => boolean;
  readonly policy: { readonly historyKeptMs: number; readonly historyRevisionsMax: number };
  readonly buggify?: Buggify;
}

/** How much more than the limits may be kept; a sixtieth of the default age. */
const lookMs = 60_000;

export class Compaction {
  readonly #parts: CompactionParts;
  /** Which revision was the newest at which time, the oldest first: revisions bear no dates. */
  readonly #marks: { readonly atMs: number; readonly revision: number }[] = [];
  /** Forgotten is what is below. */
  #before = 1;
  #timer: Timer | undefined;
  #working: Promise<void> | undefined;
  #stopped = false;

  constructor(parts: CompactionParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#look();
  }

  /** Resolves when it leaves the store alone. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#working;
  }

  #look(): void {
    const { clock, leads } = this.#parts;
    const early = (this.#parts.buggify ?? neverBuggify)('compact-early');
    const before = early ? this.#parts.revision() : this.#forgetBefore();
    if (before > this.#before && leads()) this.#working ??= this.#compact(before);
    this.#timer = clock.setTimer(early ? lookMs / 20 : lookMs, () => this.#look(), { background: true });
  }

  /** The first revision that is still wanted. */
  #forgetBefore(): number {
    const { clock, policy, revision } = this.#parts;
    const nowMs = clock.monotonicMs();
    this.#marks.push({ atMs: nowMs, revision: revision() });
    while ((this.#marks[1]?.atMs ?? nowMs) + policy.historyKeptMs <= nowMs) this.#marks.shift();
    const [oldest] = this.#marks;
    const tooOld = oldest && oldest.atMs + policy.historyKeptMs <= nowMs ? oldest.revision : 0;
    return Math.max(tooOld, revision() - policy.historyRevisionsMax) + 1;
  }

  async #compact(before: number): Promise<void> {
    const { store, log } = this.#parts;
    try {
      await store.compact(before);
      this.#before = before;
      log.debug('history forgotten', { before });
    } catch (error) {
      if (!this.#stopped) log.warn('cannot forget history; it is tried again', { before, error: describeError(error) });
    } finally {
      this.#working = undefined;
    }
  }
}
