// Group commit: commits that arrive while a batch is being written share the next one: one batch, one transaction, one
// fsync. It does not interpret commits, and leaves the answers to the writer of the batch.

import { system } from '../base/system.ts';

export interface GroupCommitOptions<R> {
  /** Limits of a batch; the rest waits for the next one. A single request may be larger. */
  readonly commitsMax: number;
  readonly bytesMax: number;
  readonly bytesOf: (request: R) => number;
  /** Answers every request of the batch in any case; never rejects. The next batch waits for it. */
  readonly write: (batch: readonly R[]) => Promise<void>;
}

export class GroupCommit<R> {
  readonly #options: GroupCommitOptions<R>;
  #queue: R[] = [];
  #flushing: Promise<void> | null = null;

  constructor(options: GroupCommitOptions<R>) {
    this.#options = options;
  }

  add(request: R): void {
    this.#queue.push(request);
    this.#flushing ??= this.#flush();
  }

  /** Resolves when every request so far has its answer. */
  async settled(): Promise<void> {
    await this.#flushing;
  }

  async #flush(): Promise<void> {
    await system.turn(); // requests of the same turn of the event loop share a batch
    while (this.#queue.length > 0) {
      await this.#options.write(this.#takeBatch());
      await system.turn();
    }
    this.#flushing = null;
  }

  #takeBatch(): R[] {
    const { commitsMax, bytesMax, bytesOf } = this.#options;
    let count = 0;
    let bytes = 0;
    for (const request of this.#queue) {
      const size = bytesOf(request);
      if (count > 0 && (count === commitsMax || bytes + size > bytesMax)) break;
      count++;
      bytes += size;
    }
    return this.#queue.splice(0, count);
  }
}
