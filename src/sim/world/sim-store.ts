// The store as one control plane reaches it: late, sometimes unreachable, sometimes silent about whether it wrote. Behind it is the one
// database of the run. The calls of a dead process never return; those on their way may still be carried out.

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
  /** The clock of the process whose store this is. */
  readonly clock: ProcessClock;
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly weather: () => Weather['store'];
  readonly tally: Tally;
  readonly chances: Chances;
  /** Whether a partition lies between this process and the store. */
  readonly parted?: () => boolean;
}

/** How long a call goes unanswered before the client of a store gives up. */
const silenceMs = 5000;

export class SimStore implements Store {
  readonly #options: SimStoreOptions;

  constructor(options: SimStoreOptions) {
    this.#options = options;
  }

  get(key: string) {
    return this.#read(`get of "${key}"`, () => this.#options.base.get(key));
  }

  list(...[prefix, options]: Parameters<Store['list']>) {
    return this.#read(`list of "${prefix}"`, () => this.#options.base.list(prefix, options));
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult> {
    const { base, clock, prng } = this.#options;
    const unknown = this.#hit('unknown');
    if (unknown && prng.chance(1, 2)) return this.#commitAfterGivingUp(conditions, writes);
    const slowMs = this.#hit('slow') ? 100 + prng.below(1500) : 0;
    const slowThere = prng.chance(1, 2);
    await this.#onTheWay(this.#latencyMs() + (slowThere ? slowMs : 0));
    if (this.#hit('unavailable')) {
      await sleep(clock, this.#latencyMs());
      throw unavailable('commit');
    }
    // The client cannot know which of the two messages was lost.
    await this.#assertReached('commit', 'unknown');
    const result = await base.commit(conditions, writes);
    await sleep(clock, this.#latencyMs() + (slowThere ? 0 : slowMs));
    await this.#assertReached('commit', 'unknown');
    if (unknown) throw noAnswer();
    return result;
  }

  async *watch(...[prefix, after, signal]: Parameters<Store['watch']>): ReturnType<Store['watch']> {
    const { base, clock, prng, weather } = this.#options;
    await this.#assertReached(`watch of "${prefix}"`);
    for await (const batch of base.watch(prefix, after, signal)) {
      await sleep(clock, drawDelayMs(prng, { minMs: 0, meanMs: weather().watchLagMsMean }), signal);
      if (signal.aborted) return;
      await this.#assertReached(`watch of "${prefix}"`);
      if (this.#hit('watchBroken')) throw unavailable('watch');
      yield batch;
    }
  }

  compact(before: number) {
    return this.#options.base.compact(before);
  }

  /** The true store belongs to the run. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  async #read<Result>(attempted: string, call: () => Promise<Result>): Promise<Result> {
    const { clock } = this.#options;
    await sleep(clock, this.#latencyMs());
    if (this.#hit('unavailable')) throw unavailable(attempted);
    await this.#assertReached(attempted);
    const result = await call();
    await sleep(clock, this.#latencyMs());
    await this.#assertReached(attempted);
    return result;
  }

  /** The caller gives up first, and the commit arrives later. */
  async #commitAfterGivingUp(conditions: readonly Condition[], writes: readonly Write[]): Promise<never> {
    const { base, clock, prng, parted } = this.#options;
    void this.#onTheWay(this.#latencyMs() + prng.below(500)).then(async () => {
      if (!parted?.()) await base.commit(conditions, writes).catch(() => {}); // the caller has given up
    });
    await sleep(clock, this.#latencyMs());
    throw noAnswer();
  }

  /** On the way to the store: a message in the network outlives its sender, a call within the process does not. */
  #onTheWay(delayMs: number): Promise<void> {
    const { clock, prng, timeline } = this.#options;
    if (prng.chance(1, 2)) return sleep(clock, delayMs);
    return new Promise((resolve) => void timeline.schedule(delayMs, resolve));
  }

  /** Throws, after a while, when a partition is in the way. */
  async #assertReached(attempted: string, outcome: 'none' | 'unknown' = 'none'): Promise<void> {
    const { parted, tally, clock } = this.#options;
    if (!parted?.()) return;
    tally.hit('store-parted');
    await sleep(clock, silenceMs);
    throw new StoreError('Unavailable', `${attempted}: the false store cannot be reached`, { outcome });
  }

  #latencyMs(): number {
    return drawDelayMs(this.#options.prng, { minMs: 0, meanMs: this.#options.weather().latencyMsMean });
  }

  #hit(kind: keyof Weather['store']): boolean {
    const { chances, weather, prng } = this.#options;
    return chances.befalls(`store-${kind}`, weather()[kind], prng);
  }
}

function unavailable(attempted: string): StoreError {
  return new StoreError('Unavailable', `${attempted}: the false store was told to be away`);
}

function noAnswer(): StoreError {
  return new StoreError('Unavailable', 'no answer from the false store', { outcome: 'unknown' });
}
