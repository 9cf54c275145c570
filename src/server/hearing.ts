// Hearing: whether this process can have heard everybody who spoke. One that stood still has not, and one that never comes to rest has not read all that
// came: who never waits for input has some before it. The cache is told, and counts silence in the first case not at all, in the other in part.

import type { Clock, Timer } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Silence } from '../core/state/silence.ts';

export interface HearingParts {
  readonly silence: Pick<Silence, 'noteAwake' | 'excuse'>;
  readonly clock: Clock;
  /** How long this process has only waited since its start, in milliseconds. */
  readonly idleMs: () => number;
  readonly offlineAfterMs: number;
  readonly log: Logger;
}

/** In the time that a host may be silent. What begins and ends between two looks is not seen. */
const looksPerSilence = 6;
/** Of the time between two looks. Who has more to do than it can has none. */
const idleShareMin = 0.01;
/** Of silence while there was no rest. A third counts, or whoever keeps this process busy would keep the dead among the living. */
const excusedShare = 2 / 3;
/** From then on it is more than a moment's work, and worth a word. */
const overloadedLooks = 2;

export class Hearing {
  readonly #parts: HearingParts;
  readonly #everyMs: number;
  #timer: Timer | undefined;
  #lookedAtMs = 0;
  #idleMsThen = 0;
  #busyLooks = 0;

  constructor(parts: HearingParts) {
    this.#parts = parts;
    this.#everyMs = parts.offlineAfterMs / looksPerSilence;
  }

  /** So much comes that it has had no rest for a while. */
  get overloaded(): boolean {
    return this.#busyLooks >= overloadedLooks;
  }

  start(): void {
    this.#noteLook();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #look(): void {
    const { silence, clock, idleMs, log } = this.#parts;
    const sinceMs = this.#lookedAtMs;
    const passedMs = clock.monotonicMs() - sinceMs;
    const stoodStill = passedMs > this.#stallMsMin;
    const busy = idleMs() - this.#idleMsThen < idleShareMin * passedMs;
    this.#noteLook();
    if (stoodStill) return; // that is taken off whole, and says nothing of how much comes
    if (busy) silence.excuse(sinceMs, excusedShare);
    else if (this.overloaded) log.info('keeps up with what comes again');
    this.#busyLooks = busy ? this.#busyLooks + 1 : 0;
    if (this.#busyLooks === overloadedLooks)
      log.warn('more comes than is kept up with; a host may be silent three times as long now');
  }

  #noteLook(): void {
    const { silence, clock, idleMs } = this.#parts;
    this.#lookedAtMs = clock.monotonicMs();
    this.#idleMsThen = idleMs();
    silence.noteAwake(this.#stallMsMin);
    this.#timer = clock.setTimer(this.#everyMs, () => this.#look(), { background: true });
  }

  get #stallMsMin(): number {
    return 1.5 * this.#everyMs;
  }
}
