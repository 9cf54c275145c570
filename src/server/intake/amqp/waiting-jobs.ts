// How many jobs of messages wait for a place, kept up to date with each commit. Intake pauses while they are many, so
// that the backlog stays in the broker.

import type { Job } from '../../../api/resources/job.ts';
import type { Cache } from '../../../core/state/cache.ts';
import { keys } from '../../../core/state/keys.ts';

export class WaitingJobs {
  readonly #cache: Cache;
  readonly #prefix: string;
  readonly #waiting = new Set<string>();
  readonly #forget: () => void;

  /** `changed` is called after each change of the count. */
  constructor(parts: { readonly cache: Cache; readonly project: string; readonly changed: () => void }) {
    this.#cache = parts.cache;
    this.#prefix = keys.job(parts.project, '');
    for (const { key, value } of parts.cache.listCommitted('job')) this.#note(key, value);
    this.#forget = parts.cache.onCommitted((key) => {
      if (!key.startsWith(this.#prefix)) return;
      const before = this.#waiting.size;
      this.#note(key, this.#cache.committed('job', key)?.value);
      if (this.#waiting.size !== before) parts.changed();
    });
  }

  get count(): number {
    return this.#waiting.size;
  }

  stop(): void {
    this.#forget();
  }

  #note(key: string, job: Job | undefined): void {
    if (key.startsWith(this.#prefix) && job && waits(job)) this.#waiting.add(key);
    else this.#waiting.delete(key);
  }
}

/** Until it has a host. */
function waits({ spec, status: { phase } }: Job): boolean {
  return spec.request !== undefined && (phase === 'Queued' || phase === 'Placing');
}
