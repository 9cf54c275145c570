// A tenant of a warm pool: claims guests, keeps some, changes the pool, and repeats requests. No two claims may give one guest.

import { ApiError } from '../../api/errors.ts';
import type { WarmPoolSpec } from '../../api/resources/warm-pool.ts';
import { testInstance } from '../../core/testing.ts';
import { type Caller, pickOne, textOf } from './caller.ts';

const sizeMost = 3;

export class WarmTenant {
  readonly #caller: Caller;
  /** By id: the request that it was claimed by. */
  readonly #claims = new Map<string, string>();
  readonly #owned = new Set<string>();
  #asked = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, name, parts } = this.#caller;
    const spec = testInstance('', { cpus: 1, memoryMiB: 256, stopGraceMs: prng.below(2_000) }).spec;
    const pool: WarmPoolSpec = {
      template: { labels: {}, spec },
      size: 1 + prng.below(sizeMost),
      state: prng.chance(1, 3) ? 'suspended' : 'running',
    };
    const body = { metadata: { name }, spec: pool };
    if (
      !this.#note(
        'create',
        await this.#caller.insist((client) => client.create('warmPool', body, { idempotencyKey: name })),
      )
    )
      return;
    while (await this.#caller.nextTurn(4 * parts.scenario.betweenCallsMsMean)) {
      const draw = prng.below(100);
      if (draw < 50) await this.#claim();
      else if (draw < 80) await this.#release();
      else if (draw < 90) await this.#change((before) => ({ ...before, size: prng.below(sizeMost + 1) }));
      else
        await this.#change((before) => ({
          ...before,
          template: { ...before.template, labels: { build: String(prng.below(3)) } },
        }));
    }
    while (this.#owned.size > 0) await this.#release();
    if (prng.chance(1, 2)) this.#note('remove', await this.#caller.insist((client) => client.delete('warmPool', name)));
  }

  async #claim(): Promise<void> {
    const { prng, name, parts } = this.#caller;
    const idempotencyKey = `${name}-claim-${++this.#asked}`;
    const spec = { coldStart: prng.chance(1, 2) };
    const answer = await this.#caller.insist((client) => client.claimWarmGuest(name, { spec }, { idempotencyKey }));
    this.#caller.trace(() => `claim ${idempotencyKey} -> ${textOf(answer)}`);
    if (answer instanceof ApiError) return;
    const { id } = answer.metadata;
    const other = this.#claims.get(id);
    if (other !== undefined) parts.onViolation(0, `${id} was claimed by ${other} and by ${idempotencyKey}`);
    this.#claims.set(id, idempotencyKey);
    this.#owned.add(id);
    parts.tally.hit(answer.status.claimed?.warm ? 'warm-hit' : 'warm-miss');
  }

  async #release(): Promise<void> {
    const id = pickOne([...this.#owned], this.#caller.prng);
    if (id === undefined) return;
    this.#owned.delete(id);
    await this.#caller.deleteInstance(id);
  }

  async #change(wanted: (spec: WarmPoolSpec) => WarmPoolSpec): Promise<void> {
    const { name } = this.#caller;
    const found = await this.#caller.insist((client) => client.get('warmPool', name));
    if (found instanceof ApiError) return;
    const { labels, revision } = found.metadata;
    const body = { metadata: { labels, revision }, spec: wanted(found.spec) };
    this.#note('change', await this.#caller.insist((client) => client.replace('warmPool', name, body)));
  }

  #note(what: string, answer: unknown): boolean {
    const { parts, name } = this.#caller;
    this.#caller.trace(() => `${what} ${name} -> ${answer instanceof ApiError ? textOf(answer) : 'done'}`);
    if (answer instanceof ApiError) return false;
    parts.tally.hit(`warm-${what}`);
    return true;
  }
}
