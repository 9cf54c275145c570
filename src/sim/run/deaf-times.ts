// Deaf times: when no control plane could read heartbeats, so that the silence of a host counts for nothing. The store was down or
// closed, or the only control plane was paused or flooded.

import type { ServerLife } from '../checkers/checker.ts';
import type { Scenario } from '../scenario.ts';
import type { Timeline } from '../world/timeline.ts';

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

interface Pause {
  readonly fromMs: number;
  toMs: number;
  /** The share of the time that counts as deaf. */
  readonly share: number;
  /** A pause ends with the process that was paused. */
  readonly life: ServerLife | undefined;
}

export interface DeafTimesOptions {
  readonly timeline: Timeline;
  readonly scenario: Pick<Scenario, 'controlPlanes' | 'offlineAfterMs'>;
  readonly serverLives: readonly ServerLife[];
  /** When the store was down. */
  readonly storeAway: () => readonly Span[];
}

/** The share of a flood that counts as deaf: the product notices a flood late. */
const floodShare = 2 / 3;

export class DeafTimes {
  readonly #options: DeafTimesOptions;
  readonly #pauses: Pause[] = [];
  readonly #closures: { readonly fromMs: number; toMs: number }[] = [];
  #crawledMs = Number.NEGATIVE_INFINITY;

  constructor(options: DeafTimesOptions) {
    this.#options = options;
  }

  /** All of them; the last may last on. */
  spans(): readonly Span[] {
    const { timeline, scenario, storeAway } = this.#options;
    // While every commit takes seconds, decisions and heartbeats arrive in any order: the checkers can conclude nothing.
    if (timeline.nowMs - this.#crawledMs < 2 * scenario.offlineAfterMs) return [];
    return [...storeAway(), ...this.#pauses.map((pause) => this.#spanOf(pause)), ...this.#closures];
  }

  notePause(durationMs: number): void {
    if (this.#alone) this.#begin(durationMs, 1);
  }

  noteFlood(flooded: boolean): void {
    if (!this.#alone) return;
    const last = this.#pauses.findLast(({ toMs }) => toMs === Number.POSITIVE_INFINITY);
    if (last) last.toMs = this.#nowMs;
    if (flooded) this.#begin(Number.POSITIVE_INFINITY, floodShare);
  }

  noteCrawl(crawls: boolean): void {
    this.#crawledMs = crawls ? Number.POSITIVE_INFINITY : this.#nowMs;
  }

  noteClosed(): void {
    this.#closures.push({ fromMs: this.#nowMs, toMs: Number.POSITIVE_INFINITY });
  }

  noteOpened(): void {
    const closure = this.#closures.at(-1);
    if (closure) closure.toMs = this.#nowMs;
  }

  get #nowMs(): number {
    return this.#options.timeline.nowMs;
  }

  /** With several control planes the others go on reading heartbeats. */
  get #alone(): boolean {
    return this.#options.scenario.controlPlanes === 1;
  }

  #begin(durationMs: number, share: number): void {
    const fromMs = this.#nowMs;
    this.#pauses.push({ fromMs, toMs: fromMs + durationMs, share, life: this.#options.serverLives.at(-1) });
  }

  /** A part of a flood counts, as though the control plane were paused for that part. */
  #spanOf({ fromMs, toMs, share, life }: Pause): Span {
    return { fromMs, toMs: fromMs + share * (Math.min(toMs, life?.endedMs ?? toMs, this.#nowMs) - fromMs) };
  }
}
