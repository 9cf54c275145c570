// Hearing: whether this process can have read all heartbeats that were sent. A process that was stopped has not; a process that is never
// idle has unread input. The cache does not count silence during a stop, and counts only part of it during overload.

import type { Clock, Timer } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Silence } from '../core/state/silence.ts';

export interface HearingParts {
  readonly silence: Pick<Silence, 'noteAwake' | 'excuse'>;
  readonly clock: Clock;
  /** How long the process has been idle since its start, in milliseconds. */
  readonly idleMs: () => number;
  readonly offlineAfterMs: number;
  readonly log: Logger;
}

/** Checks within the time that a host may be silent. A stop that begins and ends between two checks is not seen. */
const looksPerSilence = 6;
/** A process that is idle for a smaller share of the time between two checks is overloaded. */
const idleShareMin = 0.01;
/** Share of silence that does not count during overload. A third counts: constant load must not keep lost hosts alive for ever. */
const excusedShare = 2 / 3;
/** An overload is logged after this many checks. */
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

  /** Since when the process has not been idle. */
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
    if (stoodStill) return; // a stop is subtracted in full, and says nothing about the load
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
