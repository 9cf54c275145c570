// Recent answers about the whole fleet, shared by all callers: an answer about thousands of hosts takes long to compute, and each open
// dashboard asks for it.

import type { Clock } from '../base/clock.ts';

interface Made<T> {
  readonly atMs: number;
  readonly answer: Promise<T>;
  /** Infinite while the answer is being computed: it is shared then, whatever changes. */
  tookMs: number;
  outdated: boolean;
}

/** At most 2 % of the time is spent on answers that are computed again because something changed. */
const shareOfTime = 0.02;
const questionsMax = 16;

export class RecentAnswers<Question, T> {
  readonly #clock: Clock;
  readonly #make: (question: Question) => Promise<T>;
  readonly #last = new Map<Question, Made<T>>();

  constructor(clock: Clock, make: (question: Question) => Promise<T>) {
    this.#clock = clock;
    this.#make = make;
  }

  /** The subject of the answers has changed: they are computed again as soon as the time budget allows. */
  outdate(): void {
    for (const made of this.#last.values()) made.outdated = true;
  }

  /** An answer that is at most `maxAgeMs` old; the age of one that is being computed counts from its start. */
  of(question: Question, maxAgeMs: number): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    const last = this.#last.get(question);
    if (last !== undefined && maxAgeMs > 0) {
      const sharedMs = last.outdated ? Math.min(maxAgeMs, last.tookMs / shareOfTime) : maxAgeMs;
      if (nowMs - last.atMs <= sharedMs) return last.answer;
    }
    const answer = this.#make(question);
    const made: Made<T> = { atMs: nowMs, answer, tookMs: Number.POSITIVE_INFINITY, outdated: false };
    if (this.#last.size >= questionsMax) this.#last.clear();
    this.#last.set(question, made);
    answer.then(
      () => (made.tookMs = this.#clock.monotonicMs() - nowMs),
      () => this.#last.delete(question),
    );
    return answer;
  }
}
