// The rebalancer: an operator who empties hosts that are little used, by the hash of the plan that was shown. The hosts open again by themselves.

import { ApiError } from '../../api/errors.ts';
import { type Caller, textOf } from './caller.ts';

export class Rebalancer {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(5_000)) {
      const options = {
        budget: 1 + prng.below(10),
        thresholdPercent: 50 + prng.below(51),
        movesMax: 1 + prng.below(4),
        coolDownMs: prng.chance(1, 2) ? 0 : 5_000,
      };
      const shown = await this.#caller.insist((client) => client.rebalance(options));
      if (shown instanceof ApiError || !shown.plan || shown.plan.hosts.length === 0) continue;
      const { hash, hosts } = shown.plan;
      const answer = await this.#caller.insist((client) => client.rebalance({ ...options, apply: hash }));
      const refused = answer instanceof ApiError;
      const names = hosts.map(({ host }) => host).join(', ');
      this.#caller.trace(() => `rebalance: empty ${names} -> ${refused ? textOf(answer) : 'done'}`);
      parts.tally.hit(refused ? 'rebalance-refused' : 'rebalance-begun');
    }
  }
}
