// An operator who empties hosts: looks at plans, applies them by hash, cancels some drains, and leaves others to their deadline. Some hosts
// that are open again get back what had left them.

import { ApiError } from '../../api/errors.ts';
import type { DrainOptions } from '../../api/plans/host-plan.ts';
import { type Caller, textOf } from './caller.ts';

export class DrainTenant {
  readonly #caller: Caller;
  readonly #hosts: readonly string[];
  /** Hosts that were closed by it, as far as it knows. */
  readonly #drained = new Set<string>();

  constructor(caller: Caller, hosts: readonly string[]) {
    this.#caller = caller;
    this.#hosts = hosts;
  }

  async run(): Promise<void> {
    const { prng } = this.#caller;
    while (await this.#caller.nextTurn(8_000)) {
      const host = this.#hosts[prng.below(this.#hosts.length)] ?? '';
      if (this.#drained.has(host) && prng.chance(1, 2)) await this.#cancel(host);
      else await this.#drain(host);
    }
    // A host that stays closed is as right as one that is open again.
    for (const host of this.#drained) if (prng.chance(2, 3)) await this.#cancel(host);
  }

  async #drain(host: string): Promise<void> {
    const { prng, parts } = this.#caller;
    const options: DrainOptions = {
      stopOthers: prng.chance(1, 3),
      movesMax: 1 + prng.below(3),
      deadlineMs: 1_000 * (5 + prng.below(40)),
      // What is stopped at a deadline is missing for longer than an update permits.
      atDeadline: prng.chance(1, 3) && parts.scenario.updates !== 'calm' ? 'stop' : 'leave',
      ...(prng.chance(1, 3) ? { thenOpen: true } : {}),
    };
    const shown = await this.#caller.insist((client) => client.drainHost(host, options));
    if (shown instanceof ApiError || !shown.plan) return this.#note(`plan ${host}`, shown);
    const { hash } = shown.plan;
    await this.#caller.nextTurn(1_000);
    const begun = await this.#caller.insist((client) => client.drainHost(host, { ...options, apply: hash }));
    this.#note(`drain ${host}`, begun);
    if (!(begun instanceof ApiError)) this.#drained.add(host);
  }

  async #cancel(host: string): Promise<void> {
    const answer = await this.#caller.insist((client) => client.cancelDrain(host));
    this.#note(`cancel ${host}`, answer);
    if (answer instanceof ApiError) return;
    this.#drained.delete(host);
    if (this.#caller.prng.chance(1, 2)) await this.#restore(host);
  }

  async #restore(host: string): Promise<void> {
    const { prng } = this.#caller;
    const options = { movesMax: 1 + prng.below(3), deadlineMs: 1_000 * (5 + prng.below(40)) };
    const shown = await this.#caller.insist((client) => client.restoreHost(host, options));
    if (shown instanceof ApiError || !shown.plan) return this.#note(`restore-plan ${host}`, shown);
    const { hash } = shown.plan;
    this.#note(
      `restore ${host}`,
      await this.#caller.insist((client) => client.restoreHost(host, { ...options, apply: hash })),
    );
  }

  #note(what: string, answer: unknown): void {
    const refused = answer instanceof ApiError;
    this.#caller.trace(() => `${what} -> ${refused ? textOf(answer) : 'done'}`);
    this.#caller.parts.tally.hit(`${refused ? 'drain-refused' : 'drain'}-${what.split(' ', 1)[0]}`);
  }
}
