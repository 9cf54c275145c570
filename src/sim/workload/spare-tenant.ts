// A tenant of spares: asks for some, asks again under the same key, releases some, leaves others to the time limit, and sees to those of which
// it is unknown what became of them.

import { ApiError } from '../../api/errors.ts';
import { sleep } from '../../base/clock.ts';
import type { Client } from '../../api/client/client.ts';
import { isEnded, type Spare } from '../../api/resources/spare.ts';
import type { FalseMachines } from '../world/false-machines.ts';
import { createProcessClock } from '../world/process-clock.ts';
import { type Caller, pickOne, textOf } from './caller.ts';

export interface SpareTenantOptions {
  readonly caller: Caller;
  readonly machines: FalseMachines;
}

const askedMax = 16;
const pauseMsMax = 2_500;
const endTurnsMax = 60;

export class SpareTenant {
  readonly #caller: Caller;
  readonly #machines: FalseMachines;
  /** Ids, by idempotency key. */
  readonly #asked = new Map<string, string>();
  #keys = 0;

  constructor({ caller, machines }: SpareTenantOptions) {
    this.#caller = caller;
    this.#machines = machines;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(Math.min(pauseMsMax, 4 * parts.scenario.betweenCallsMsMean))) {
      const draw = prng.below(100);
      const id = pickOne([...this.#asked.values()], prng);
      if (id === undefined || (draw < 45 && this.#keys < askedMax)) await this.#prepare();
      else if (draw < 80) await this.#look(id);
      else await this.#release(id, false);
    }
    await this.#end();
  }

  async #prepare(): Promise<void> {
    if (this.#keys >= askedMax) return;
    const { prng, parts, name } = this.#caller;
    const key = `${name}-${++this.#keys}`;
    const body = {
      metadata: { name: key },
      spec: {
        cpus: 1,
        memoryMiB: 256 * (1 + prng.below(4)),
        provisioner: prng.chance(2, 3) ? 'maker' : 'blind',
        ttlMs: 2_000 + prng.below(15_000),
        provisionMs: 4_000 + prng.below(20_000),
        attemptsMax: 1 + prng.below(3),
        ...(prng.chance(1, 2) ? { ready: { tcp: { port: 22 }, timeoutMs: 15_000, periodMs: 1_000 } } : {}),
        ...(prng.chance(1, 4) ? { whenFull: 'wait' as const, waitMs: 10_000 } : {}),
      },
    };
    for (let times = prng.chance(1, 5) ? 2 : 1; times > 0; times--) {
      const answer = await this.#caller.insist((client: Client) =>
        client.create('spare', body, { idempotencyKey: key }),
      );
      this.#caller.trace(() => `prepare ${key} -> ${textOf(answer)}`);
      if (answer instanceof ApiError) {
        if (answer.code !== 'QuotaExceeded')
          parts.onViolation(3, `${name} was refused spare ${key}: ${answer.code} ${answer.message}`);
        return;
      }
      parts.tally.hit('spare-accepted');
      const { id } = answer.metadata;
      const known = this.#asked.get(key);
      if (known !== undefined && known !== id)
        parts.onViolation(4, `${name} asked twice with key ${key}, and was answered ${known} and ${id}`);
      this.#asked.set(key, id);
    }
  }

  /** Undefined: it is over, or this server does not know it yet. */
  async #look(id: string): Promise<Spare | undefined> {
    const answer = await this.#caller.insist((client: Client) => client.get('spare', id));
    if (answer instanceof ApiError) return undefined;
    this.#caller.parts.tally.hit(`spare-${answer.status.phase.toLowerCase()}`);
    if (answer.status.phase === 'Unknown') await this.#release(id, this.#caller.prng.chance(1, 2));
    return answer;
  }

  async #release(id: string, force: boolean): Promise<void> {
    if (force) this.#machines.abandon(id);
    const answer = await this.#caller.insist((client: Client) =>
      client.delete('spare', id, force ? { force: true } : {}),
    );
    this.#caller.trace(() => `release ${id}${force ? ' by force' : ''} -> ${textOf(answer)}`);
  }

  /** Until all have come to their end; the last ones by force, for they keep room that others wait for. */
  async #end(): Promise<void> {
    const clock = createProcessClock(this.#caller.parts.timeline);
    for (let turn = 0; turn < endTurnsMax && this.#asked.size > 0; turn++) {
      for (const [key, id] of this.#asked) {
        const spare = await this.#look(id);
        if (spare && isEnded(spare.status.phase)) this.#asked.delete(key);
      }
      await sleep(clock, 1_000);
    }
    for (const id of this.#asked.values()) await this.#release(id, true);
  }
}
