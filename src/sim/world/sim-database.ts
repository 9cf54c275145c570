// The one true store of a run, as a server of its own: a commit that arrives is synced before it is there; a crash loses those under
// way, or not, and nobody is told; while it is away every call fails and every watch breaks. What it has answered is never lost.

import { firstOf } from '../../base/work/first-of.ts';
import type { Prng } from '../../base/prng.ts';
import { type CommitResult, type Store, StoreError } from '../../store/store.ts';
import type { Tally } from '../batch/tally.ts';
import type { Timeline } from './timeline.ts';

export interface Database {
  /** For those who call it over their own ways. */
  readonly store: Store;
  /** At once, with what is under way; it comes back by itself. */
  crash(downMs: number): void;
  /** While it syncs the next commit; undefined: not any more. */
  crashUnderNext(next: { readonly downMs: number; readonly onCrash: () => void } | undefined): void;
  /** What is under way ends first. It comes back by itself. */
  leave(awayMs: number): void;
  /** When it was down; the last may last on. */
  readonly away: readonly { readonly fromMs: number; readonly toMs: number }[];
}

export interface DatabaseOptions {
  readonly base: Store;
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly tally: Tally;
  /** Longest time of a sync; 0: commits take none, so that a crash finds none under way. */
  readonly syncMsMax: number;
}

export function createDatabase({ base, timeline, prng, tally, syncMsMax }: DatabaseOptions): Database {
  let life = new AbortController();
  let down = 0;
  let crashNext: Parameters<Database['crashUnderNext']>[0];
  const away: { readonly fromMs: number; toMs: number }[] = [];
  const syncing = new Set<(survives: boolean) => void>();

  const assertUp = (attempted: string): void => {
    if (down > 0) throw new StoreError('Unavailable', `${attempted}: the false store is down`);
  };

  const commit: Store['commit'] = (conditions, writes) => {
    assertUp('commit');
    if (syncMsMax === 0) return base.commit(conditions, writes);
    return new Promise<CommitResult>((resolve, reject) => {
      const land = (): void => {
        syncing.delete(crash);
        base.commit(conditions, writes).then(resolve, reject);
      };
      const syncMs = prng.below(syncMsMax + 1);
      const timer = timeline.schedule(syncMs, land);
      const crash = (survives: boolean): void => {
        timer.cancel();
        tally.hit(survives ? 'store-crash-kept' : 'store-crash-lost');
        const silence = (): void =>
          reject(new StoreError('Unavailable', 'the false store died under the commit', { outcome: 'unknown' }));
        if (survives) base.commit(conditions, writes).then(silence, silence);
        else silence();
      };
      syncing.add(crash);
      if (crashNext === undefined) return;
      const { downMs, onCrash } = crashNext;
      crashNext = undefined;
      timeline.schedule(prng.below(syncMs + 1), () => {
        onCrash();
        crashNow(downMs);
      });
    });
  };

  const end = (durationMs: number): void => {
    const former = life;
    life = new AbortController();
    const now = away.at(-1);
    const toMs = timeline.nowMs + durationMs;
    if (now && now.toMs >= timeline.nowMs) now.toMs = Math.max(now.toMs, toMs);
    else away.push({ fromMs: timeline.nowMs, toMs });
    down += 1;
    timeline.schedule(durationMs, () => {
      down -= 1;
    });
    former.abort();
  };

  const crashNow = (downMs: number): void => {
    for (const die of [...syncing]) {
      syncing.delete(die);
      die(prng.chance(1, 2));
    }
    end(downMs);
  };

  return {
    store: {
      async get(key) {
        assertUp(`get of "${key}"`);
        return base.get(key);
      },
      async list(prefix, options) {
        assertUp(`list of "${prefix}"`);
        return base.list(prefix, options);
      },
      async commit(conditions, writes) {
        return commit(conditions, writes);
      },
      async *watch(prefix, after, signal) {
        assertUp(`watch of "${prefix}"`);
        const { signal: ended } = life;
        const over = firstOf(signal, ended);
        try {
          for await (const batch of base.watch(prefix, after, over.signal)) {
            if (ended.aborted) break;
            yield batch;
          }
        } finally {
          over.forget();
        }
        if (ended.aborted) throw new StoreError('Unavailable', `watch of "${prefix}": the false store went away`);
      },
      async compact(before) {
        assertUp('compaction');
        return base.compact(before);
      },
      close: () => base.close(),
    },
    crash: crashNow,
    crashUnderNext(next) {
      crashNext = next;
    },
    leave: (awayMs) => end(awayMs),
    away,
  };
}
