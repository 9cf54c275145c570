// The resizer: a user who gives instances other CPUs and memory and larger disks, by the hash of the plan that was shown.

import { ApiError } from '../../api/errors.ts';
import type { ResizeOptions } from '../../api/plans/resize-plan.ts';
import { type Caller, pickOne, textOf } from './caller.ts';

export class Resizer {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(3 * parts.scenario.betweenCallsMsMean)) {
      const found = await this.#caller.insist((client) => client.list('instance'));
      if (found instanceof ApiError) continue;
      const placed = found.items.filter(({ status }) => status.phase === 'Running' || status.phase === 'Stopped');
      const instance = pickOne(prng.chance(9, 10) ? placed : found.items, prng);
      if (instance !== undefined) await this.#resize(instance.metadata);
    }
  }

  async #resize({ id, project }: { readonly id: string; readonly project: string }): Promise<void> {
    const options = this.#drawOptions();
    const shown = await this.#caller.insist((client) => client.resizeInstance(id, { project }, options));
    if (shown instanceof ApiError || shown.plan.obstacles.length > 0) return;
    const body = { ...options, apply: shown.plan.hash };
    const answer = await this.#caller.insist((client) => client.resizeInstance(id, { project }, body));
    const refused = answer instanceof ApiError;
    this.#caller.trace(() => `resize ${id} to ${JSON.stringify(options)} -> ${refused ? textOf(answer) : 'done'}`);
    this.#caller.parts.tally.hit(refused ? 'resize-refused' : 'resize-begun');
  }

  #drawOptions(): ResizeOptions {
    const { prng } = this.#caller;
    const memory = { memoryMiB: 256 * (1 + prng.below(6)) };
    if (prng.chance(1, 3)) return memory;
    const cpus = { cpus: 1 + prng.below(3) };
    return prng.chance(1, 2) ? cpus : { ...cpus, ...memory, diskGiB: 1 + prng.below(6) };
  }
}
