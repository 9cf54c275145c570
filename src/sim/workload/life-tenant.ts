// A tenant of instances whose time is limited, or which are protected: creates them, extends their time, protects them, ends the protection,
// and deletes. Nothing that is protected may go, no matter who asks.

import { ApiError } from '../../api/errors.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { keyLabel } from '../intents.ts';
import { type Caller, type Owned, pickOne, textOf } from './caller.ts';
import { drawInstance } from './draw-instance.ts';

/** How many it has at once. */
const instancesMax = 4;

export class LifeTenant {
  readonly #caller: Caller;
  readonly #own: Owned[] = [];
  #keys = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(5 * parts.scenario.betweenCallsMsMean)) {
      const which = pickOne(this.#own, prng);
      const draw = prng.below(100);
      if (which === undefined || (draw < 40 && this.#own.length < instancesMax)) await this.#create();
      else if (draw < 60) await this.#change(which, 'extend', extended(5_000 + prng.below(20_000)));
      else if (draw < 75) await this.#change(which, 'protect', isProtected(true));
      else if (draw < 90) await this.#change(which, 'unprotect', isProtected(false));
      else await this.#delete(which);
    }
  }

  async #create(): Promise<void> {
    const { prng, name } = this.#caller;
    const key = `${name}-${++this.#keys}`;
    const life = prng.chance(2, 3) ? { ttlMs: 3_000 + prng.below(30_000) } : { protected: true };
    const body = {
      metadata: { name: key, labels: { [keyLabel]: key, tenant: name } },
      spec: { ...drawInstance(prng), cpus: 1, memoryMiB: 256, ...life },
    };
    // Its first answer was lost, and its time is over since; or it is removed already.
    const mayRefuse = (code: string): boolean => code === 'Conflict' || (code === 'NotFound' && 'ttlMs' in life);
    const made = await this.#caller.createInstance({ key, body, mayRefuse });
    if (made) this.#own.push(made);
  }

  async #change({ id }: Owned, what: string, wanted: (spec: InstanceSpec) => InstanceSpec): Promise<void> {
    const found = await this.#caller.insist((client) => client.get('instance', id));
    if (found instanceof ApiError) return this.#forget(id, found);
    const { name, labels, revision } = found.metadata;
    const body = { metadata: { labels, revision }, spec: wanted(found.spec) };
    this.#note(what, name, await this.#caller.insist((client) => client.replace('instance', name, body)));
  }

  async #delete({ id, name }: Owned): Promise<void> {
    const answer = await this.#caller.deleteInstance(id);
    this.#note('delete', name, answer);
    if (!(answer instanceof ApiError)) this.#forget(id, answer);
  }

  /** It may be one that this control plane does not know yet: it is left to its time. */
  #forget(id: string, answer: object): void {
    if (answer instanceof ApiError && answer.code !== 'NotFound') return;
    const at = this.#own.findIndex((each) => each.id === id);
    if (at >= 0) this.#own.splice(at, 1);
  }

  #note(what: string, name: string, answer: Parameters<typeof textOf>[0]): void {
    this.#caller.trace(() => `${what} ${name} -> ${textOf(answer)}`);
    this.#caller.parts.tally.hit(`life-${what}${answer instanceof ApiError ? '-refused' : ''}`);
  }
}

/** Of one that has a limited time. */
const extended =
  (byMs: number) =>
  (spec: InstanceSpec): InstanceSpec =>
    spec.ttlMs === undefined ? spec : { ...spec, ttlMs: spec.ttlMs + byMs };

/** What expires cannot be protected. */
const isProtected =
  (wanted: boolean) =>
  ({ ttlMs: _, ...spec }: InstanceSpec): InstanceSpec => ({ ...spec, protected: wanted });
