// A watcher: watches one kind through the API, compares each change with the history, and resumes where a watch ended.

import { sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import { ApiError } from '../../api/errors.ts';
import { createWatchCheck, type WatchedKind } from '../checkers/watch.ts';
import type { Line } from './caller.ts';
import type { WorkloadParts } from './parts.ts';

interface WatcherOptions {
  readonly line: Line;
  readonly kind: WatchedKind;
  readonly prng: Prng;
  /** The only one that it may read, although it asks for all; absent: it may read everything. */
  readonly project?: string;
}

export class Watcher {
  readonly #parts: WorkloadParts;
  readonly #line: Line;
  readonly #kind: WatchedKind;
  readonly #prng: Prng;
  readonly #project: string | undefined;
  /** The revision from which the next watch goes on; undefined: from now. */
  #after: number | undefined;

  constructor(parts: WorkloadParts, { line, kind, prng, project }: WatcherOptions) {
    this.#parts = parts;
    this.#line = line;
    this.#kind = kind;
    this.#prng = prng;
    this.#project = project;
  }

  async run(): Promise<void> {
    const { over, tally } = this.#parts;
    while (!over.aborted) {
      try {
        const fault = await this.#watch();
        if (fault !== undefined)
          return this.#parts.onViolation(this.#project === undefined ? 6 : 10, `${this.#line.peer.name}: ${fault}`);
      } catch (error) {
        if (error instanceof ApiError && error.code === 'Compacted') {
          tally.hit('watch-compacted');
          this.#after = undefined;
        } else if (error instanceof ApiError && error.code === 'InvalidRequest') tally.hit('watch-too-early'); // this control plane lags behind the last one
        // After any other error the watch is simply opened again.
      }
      await sleep(this.#line.peer.clock, 100 + this.#prng.below(2000), over);
    }
  }

  /** One watch, until it ends. Returns what was wrong with a line. */
  async #watch(): Promise<string | undefined> {
    const { client } = this.#line;
    const { commits, tally, over } = this.#parts;
    const kind = this.#kind;
    const left = new AbortController();
    const end = (): void => left.abort();
    over.addEventListener('abort', end, { once: true });
    try {
      let after = (this.#after ??= (await client.list(kind, { limit: 1 })).revision);
      const check = createWatchCheck(commits, after, { kind, project: this.#project });
      for await (const change of client.watch(kind, { revision: after }, left.signal)) {
        const { type, revision } = change;
        const fault = check({
          type,
          revision,
          ...(type === 'bookmark' ? {} : { name: change.resource.metadata.name }),
        });
        if (fault !== undefined) return fault;
        tally.hit(this.#project === undefined ? 'watched' : 'walled-watched');
        // A revision may hold several changes: only the revisions before it are surely complete.
        this.#after = after = Math.max(after, type === 'bookmark' ? revision : revision - 1);
      }
      return undefined;
    } finally {
      over.removeEventListener('abort', end);
    }
  }
}
