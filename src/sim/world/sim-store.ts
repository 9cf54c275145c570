// The store as one control plane sees it: late, now and then unreachable, sometimes silent about whether it wrote. Behind it is the
// one database of the run. A dead process's calls never come back; those on their way may still be carried out.

import { sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import { type CommitResult, type Condition, type Store, StoreError, type Write } from '../../store/store.ts';
import type { Chances } from './chances.ts';
import type { ProcessClock } from './process-clock.ts';
import type { Tally } from '../batch/tally.ts';
import type { Timeline } from './timeline.ts';
import { drawDelayMs, type Weather } from './weather.ts';

export interface SimStoreOptions {
  readonly base: Store;
  /** Of the process whose store this is. */
  readonly clock: ProcessClock;
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly weather: () => Weather['store'];
  readonly tally: Tally;
  readonly chances: Chances;
  /** Whether the way between this process and the store is cut. */
  readonly parted?: () => boolean;
}

/** How long a call goes unanswered before the client of a store gives up. */
const silenceMs = 5000;

export function createSimStore(options: SimStoreOptions): Store {
  const { base, clock, timeline, prng, weather, tally, chances } = options;
  const latencyMs = (): number => drawDelayMs(prng, { minMs: 0, meanMs: weather().latencyMsMean });
  const hit = (kind: keyof Weather['store']): boolean => chances.befalls(`store-${kind}`, weather()[kind], prng);
  const unavailable = (attempted: string): StoreError =>
    new StoreError('Unavailable', `${attempted}: the false store was told to be away`);

  /** Throws, after a while, where the way is cut. */
  const assertReached = async (attempted: string, outcome: 'none' | 'unknown' = 'none'): Promise<void> => {
    if (!options.parted?.()) return;
    tally.hit('store-parted');
    await sleep(clock, silenceMs);
    throw new StoreError('Unavailable', `${attempted}: the false store cannot be reached`, { outcome });
  };

  const read = async <Result>(attempted: string, call: () => Promise<Result>): Promise<Result> => {
    await sleep(clock, latencyMs());
    if (hit('unavailable')) throw unavailable(attempted);
    await assertReached(attempted);
    const result = await call();
    await sleep(clock, latencyMs());
    await assertReached(attempted);
    return result;
  };

  /** On the way to the store: a message in the network outlives its sender, a call within the process does not. */
  const onTheWay = (delayMs: number): Promise<void> => {
    if (prng.chance(1, 2)) return sleep(clock, delayMs);
    return new Promise((resolve) => void timeline.schedule(delayMs, resolve));
  };

  const commit = async (conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult> => {
    const unknown = hit('unknown');
    if (unknown && prng.chance(1, 2)) {
      // The caller gives up first, and the commit arrives later.
      void onTheWay(latencyMs() + prng.below(500)).then(async () => {
        if (!options.parted?.()) await base.commit(conditions, writes).catch(() => {}); // the caller has given up
      });
      await sleep(clock, latencyMs());
      throw new StoreError('Unavailable', 'no answer from the false store', { outcome: 'unknown' });
    }
    const slowMs = hit('slow') ? 100 + prng.below(1500) : 0;
    const slowThere = prng.chance(1, 2);
    await onTheWay(latencyMs() + (slowThere ? slowMs : 0));
    if (hit('unavailable')) {
      await sleep(clock, latencyMs());
      throw unavailable('commit');
    }
    // It does not know which way its words were lost.
    await assertReached('commit', 'unknown');
    const result = await base.commit(conditions, writes);
    await sleep(clock, latencyMs() + (slowThere ? 0 : slowMs));
    await assertReached('commit', 'unknown');
    if (unknown) throw new StoreError('Unavailable', 'no answer from the false store', { outcome: 'unknown' });
    return result;
  };

  return {
    get: (key) => read(`get of "${key}"`, () => base.get(key)),
    list: (prefix, options) => read(`list of "${prefix}"`, () => base.list(prefix, options)),
    commit,
    async *watch(prefix, after, signal) {
      await assertReached(`watch of "${prefix}"`);
      for await (const batch of base.watch(prefix, after, signal)) {
        await sleep(clock, drawDelayMs(prng, { minMs: 0, meanMs: weather().watchLagMsMean }), signal);
        if (signal.aborted) return;
        await assertReached(`watch of "${prefix}"`);
        if (hit('watchBroken')) throw unavailable('watch');
        yield batch;
      }
    },
    compact: (before) => base.compact(before),
    close: () => Promise.resolve(), // the true store is the run's
  };
}
