// Progress: what a run has done so far, from its commits. The calm phase ends when nothing but heartbeats is written.

import type { Tally } from '../batch/tally.ts';
import type { Commit, CommittedState } from '../history.ts';
import { summaryOf } from './summary.ts';

export interface ProgressOptions {
  readonly state: CommittedState;
  readonly tally: Tally;
  readonly nowMs: () => number;
}

export class Progress {
  readonly #options: ProgressOptions;
  /** Instances that ran at some time. */
  readonly #ran = new Set<string>();
  /** Keys of allocations of tasks. A long queue of tasks is served one by one, also in the calm. */
  readonly #served = new Set<string>();
  #lastServedMs = 0;
  /** The last commit that was more than heartbeats. */
  #lastNews: { readonly atMs: number; readonly commit: Commit } | undefined;

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  note(commit: Commit): void {
    const { state, tally, nowMs } = this.#options;
    for (const { key, before, after } of commit.events) {
      if (after?.kind === 'instance' && after.status.phase === 'Running') this.#ran.add(after.metadata.id);
      if (after?.kind === 'instance' && after.status.phase === 'Suspended') tally.hit('guest-suspended');
      if (before?.kind === 'leader' && after?.kind === 'leader' && before.term !== after.term)
        tally.hit('leader-changed');
      if (after?.kind !== 'allocation' || after.consumer.kind !== 'task' || this.#served.has(key)) continue;
      this.#served.add(key);
      this.#lastServedMs = nowMs();
    }
    if (state.newsRevision() === commit.revision) this.#lastNews = { atMs: nowMs(), commit };
  }

  /** In a restored store the tasks may be in the queue again. */
  forgetServed(): void {
    this.#served.clear();
  }

  get instancesRun(): number {
    return this.#ran.size;
  }

  get lastServedMs(): number {
    return this.#lastServedMs;
  }

  get lastNewsMs(): number {
    return this.#lastNews?.atMs ?? 0;
  }

  lastNews(): string | undefined {
    return this.#lastNews?.commit.events.flatMap(summaryOf).join('; ');
  }
}
