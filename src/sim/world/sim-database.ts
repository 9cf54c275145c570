// The one true store of a run, as a server of its own. It syncs a commit before it answers. A crash loses commits under way, or keeps
// them without an answer. While it is away every call fails and every watch breaks. It never loses what it has answered.

import { firstOf } from '../../base/concurrency/first-of.ts';
import type { Prng } from '../../base/prng.ts';
import { type CommitResult, type Condition, type Store, StoreError, type Write } from '../../store/store.ts';
import type { Tally } from '../batch/tally.ts';
import type { Timeline } from './timeline.ts';

export interface DatabaseOptions {
  readonly base: Store;
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly tally: Tally;
  /** Longest time of a sync; 0: commits take no time, so that a crash finds none under way. */
  readonly syncMsMax: number;
}

interface NextCrash {
  readonly downMs: number;
  readonly onCrash: () => void;
}

export class Database {
  /** The store as its clients call it. */
  readonly store: Store;
  readonly #options: DatabaseOptions;
  readonly #away: { readonly fromMs: number; toMs: number }[] = [];
  /** For each commit that is being synced: how it dies. */
  readonly #syncing = new Set<(survives: boolean) => void>();
  #life = new AbortController();
  /** Reasons why it is down now; several may overlap. */
  #down = 0;
  #crashNext: NextCrash | undefined;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.store = this.#makeStore();
  }

  /** Crashes at once, with the commits under way. It comes back by itself. */
  crash(downMs: number): void {
    for (const die of [...this.#syncing]) {
      this.#syncing.delete(die);
      die(this.#options.prng.chance(1, 2));
    }
    this.leave(downMs);
  }

  /** Crashes while it syncs the next commit; undefined: no longer. */
  crashUnderNext(next: NextCrash | undefined): void {
    this.#crashNext = next;
  }

  /** Goes away; commits under way still end. It comes back by itself. */
  leave(awayMs: number): void {
    const { timeline } = this.#options;
    const former = this.#life;
    this.#life = new AbortController();
    const now = this.#away.at(-1);
    const toMs = timeline.nowMs + awayMs;
    if (now && now.toMs >= timeline.nowMs) now.toMs = Math.max(now.toMs, toMs);
    else this.#away.push({ fromMs: timeline.nowMs, toMs });
    this.#down += 1;
    timeline.schedule(awayMs, () => {
      this.#down -= 1;
    });
    former.abort();
  }

  /** When it was down; the last may last on. */
  get away(): readonly { readonly fromMs: number; readonly toMs: number }[] {
    return this.#away;
  }

  #makeStore(): Store {
    const { base } = this.#options;
    return {
      get: async (key) => {
        this.#assertUp(`get of "${key}"`);
        return base.get(key);
      },
      list: async (prefix, options) => {
        this.#assertUp(`list of "${prefix}"`);
        return base.list(prefix, options);
      },
      commit: async (conditions, writes) => this.#commit(conditions, writes),
      watch: (prefix, after, signal) => this.#watch(prefix, after, signal),
      compact: async (before) => {
        this.#assertUp('compaction');
        return base.compact(before);
      },
      close: () => base.close(),
    };
  }

  #assertUp(attempted: string): void {
    if (this.#down > 0) throw new StoreError('Unavailable', `${attempted}: the false store is down`);
  }

  async *#watch(...[prefix, after, signal]: Parameters<Store['watch']>): ReturnType<Store['watch']> {
    this.#assertUp(`watch of "${prefix}"`);
    const { signal: ended } = this.#life;
    const over = firstOf(signal, ended);
    try {
      for await (const batch of this.#options.base.watch(prefix, after, over.signal)) {
        if (ended.aborted) break;
        yield batch;
      }
    } finally {
      over.forget();
    }
    if (ended.aborted) throw new StoreError('Unavailable', `watch of "${prefix}": the false store went away`);
  }

  #commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult> {
    this.#assertUp('commit');
    const { base, syncMsMax } = this.#options;
    if (syncMsMax === 0) return base.commit(conditions, writes);
    return this.#synced(() => base.commit(conditions, writes));
  }

  #synced(commit: () => Promise<CommitResult>): Promise<CommitResult> {
    const { timeline, prng, tally, syncMsMax } = this.#options;
    return new Promise((resolve, reject) => {
      const syncMs = prng.below(syncMsMax + 1);
      const timer = timeline.schedule(syncMs, () => {
        this.#syncing.delete(die);
        commit().then(resolve, reject);
      });
      const die = (survives: boolean): void => {
        timer.cancel();
        tally.hit(survives ? 'store-crash-kept' : 'store-crash-lost');
        const silence = (): void =>
          reject(new StoreError('Unavailable', 'the false store died under the commit', { outcome: 'unknown' }));
        if (survives) commit().then(silence, silence);
        else silence();
      };
      this.#syncing.add(die);
      this.#crashWithin(syncMs);
    });
  }

  #crashWithin(syncMs: number): void {
    const next = this.#crashNext;
    if (next === undefined) return;
    this.#crashNext = undefined;
    const { timeline, prng } = this.#options;
    timeline.schedule(prng.below(syncMs + 1), () => {
      next.onCrash();
      this.crash(next.downMs);
    });
  }
}
