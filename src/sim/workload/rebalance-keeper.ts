// The keeper of the schedule by which the pool `default` uses fewer hosts: sets it, changes and pauses it, and ends it before the quiet.

import type { PoolSpec } from '../../api/resources/pool.ts';
import { ApiError } from '../../api/errors.ts';
import { type Caller, textOf } from './caller.ts';

const pool = 'default';

export class RebalanceKeeper {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const body = { metadata: { name: pool }, spec: this.#drawn() };
    const made = await this.#caller.insist((client) => client.create('pool', body, { idempotencyKey: 'rebalances' }));
    this.#caller.trace(() => `schedule of rebalances -> ${textOf(made)}`);
    while (await this.#caller.nextTurn(40_000)) await this.#replace(this.#drawn());
    await this.#replace({ description: '' });
  }

  #drawn(): PoolSpec {
    const { prng } = this.#caller;
    return {
      description: '',
      rebalance: {
        ...{ cron: '* * * * *', timeZone: 'UTC' },
        mode: prng.chance(2, 3) ? 'apply' : 'suggest',
        moves: (['replace', 'live', 'cold'] as const)[prng.below(3)] ?? 'live',
        paused: prng.chance(1, 8),
        budget: 1 + prng.below(10),
        thresholdPercent: 50 + prng.below(51),
        movesMax: 1 + prng.below(4),
        coolDownMs: prng.chance(1, 2) ? 0 : 5_000,
        emptiedMin: prng.chance(3, 4) ? 1 : 2,
      },
    };
  }

  async #replace(spec: PoolSpec): Promise<void> {
    const { parts } = this.#caller;
    const found = await this.#caller.insist((client) => client.get('pool', pool));
    if (found instanceof ApiError) return;
    const outcome = found.status.rebalance?.last?.outcome;
    if (outcome !== undefined) parts.tally.hit(`rebalance-${outcome.toLowerCase()}`);
    const body = { metadata: { labels: found.metadata.labels }, spec };
    const answer = await this.#caller.insist((client) => client.replace('pool', pool, body));
    this.#caller.trace(() => `schedule of rebalances ${spec.rebalance?.mode ?? 'ends'} -> ${textOf(answer)}`);
  }
}
