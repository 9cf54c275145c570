// Hearing: whether this process can have heard everybody who spoke. One that stood still has not, nor has one that never comes to rest: who never
// waits for what comes has not read all that came. The cache is told of the other times, and counts silence in those alone.

import type { Clock, Timer } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Cache } from '../core/state/cache.ts';

export interface HearingParts {
  readonly cache: Pick<Cache, 'noteAwake'>;
  readonly clock: Clock;
  /** How long this process has only waited since its start, in milliseconds. */
  readonly idleMs: () => number;
  readonly offlineAfterMs: number;
  readonly log: Logger;
}

/** While a host may be silent. What begins and ends between two looks counts as heard. */
const looksPerSilence = 6;
/** Of the time between two looks. Who has more to do than it can has none. */
const idleShareMin = 0.01;
/** Whoever keeps it busy must not keep the dead among the living: it counts as hearing again after twice the time that a host may be silent. */
const busyLooksMax = 2 * looksPerSilence;

export class Hearing {
  readonly #parts: HearingParts;
  #timer: Timer | undefined;
  #lookedAtMs = 0;
  #idleMs = 0;
  #busyLooks = 0;

  constructor(parts: HearingParts) {
    this.#parts = parts;
  }

  /** So much comes that it has had no rest for a while. */
  get overloaded(): boolean {
    return this.#busyLooks > 1;
  }

  start(): void {
    this.#lookedAtMs = this.#parts.clock.monotonicMs();
    this.#idleMs = this.#parts.idleMs();
    this.#noteAwake();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #look(): void {
    const { clock, log } = this.#parts;
    const [nowMs, idleMs] = [clock.monotonicMs(), this.#parts.idleMs()];
    const rested = idleMs - this.#idleMs >= idleShareMin * (nowMs - this.#lookedAtMs);
    this.#lookedAtMs = nowMs;
    this.#idleMs = idleMs;
    if (rested && this.overloaded) log.info('at rest again: the silence of hosts counts');
    this.#busyLooks = rested ? 0 : this.#busyLooks + 1;
    if (this.#busyLooks === 2)
      log.warn('more comes than is kept up with: for a while the silence of hosts counts for nothing');
    if (rested || this.#busyLooks > busyLooksMax) this.#noteAwake();
    else this.#lookLater();
  }

  #noteAwake(): void {
    this.#parts.cache.noteAwake(1.5 * this.#everyMs);
    this.#lookLater();
  }

  #lookLater(): void {
    this.#timer = this.#parts.clock.setTimer(this.#everyMs, () => this.#look(), { background: true });
  }

  get #everyMs(): number {
    return this.#parts.offlineAfterMs / looksPerSilence;
  }
}
