// A caller: a user with a client of the API. It repeats a call that got no answer with the same idempotency key, as the API asks its
// users to do, and notes each create and each delete of an instance before and after the call.

import { sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import { type Client, createClient, type NewResource } from '../../api/client/client.ts';
import { ApiError } from '../../api/errors.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import type { Principal } from '../../core/access/principal.ts';
import type { CreateIntent } from '../intents.ts';
import type { Peer } from '../world/peer.ts';
import { createProcessClock } from '../world/process-clock.ts';
import type { WorkloadParts } from './parts.ts';

export interface Owned {
  readonly id: string;
  readonly name: string;
}

export interface InstanceCreate {
  /** Idempotency key. */
  readonly key: string;
  readonly body: NewResource<Partial<InstanceSpec>>;
  /** Which refusals are allowed, besides that of a quota. Default: none. */
  readonly mayRefuse?: (code: ApiError['code']) => boolean;
}

/** Tenants are less patient than agents. */
const answerTimeoutMs = 9000;

export class Caller {
  readonly parts: WorkloadParts;
  readonly prng: Prng;
  readonly #peer: Peer;
  readonly #client: Client;

  constructor(parts: WorkloadParts, { peer, client }: Line, prng: Prng) {
    this.parts = parts;
    this.prng = prng;
    this.#peer = peer;
    this.#client = client;
  }

  get name(): string {
    return this.#peer.name;
  }

  /** Waits for a random time. False when no new work is to begin. */
  async nextTurn(pauseMsMax: number): Promise<boolean> {
    const { over } = this.parts;
    if (over.aborted) return false;
    await sleep(this.#peer.clock, this.prng.below(pauseMsMax), over);
    return !over.aborted;
  }

  /** Repeats the call until there is an answer. A refusal is an answer. */
  async insist<Result>(call: (client: Client) => Promise<Result>): Promise<Result | ApiError> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await call(this.#client);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.code !== 'Unavailable' && error.code !== 'HostUnreachable') return error;
        this.parts.tally.hit('call-repeated');
        this.trace(() => `again, after ${error.message}`);
        await sleep(this.#peer.clock, 50 + this.prng.below(Math.min(4000, 200 * 2 ** attempt)));
      }
    }
  }

  /** Undefined when it was refused. */
  async createInstance({ key, body, mayRefuse }: InstanceCreate): Promise<Owned | undefined> {
    const { intents, onViolation } = this.parts;
    const intent: CreateIntent = { key, tenant: this.name, outcome: 'open', instanceId: undefined };
    intents.creates.set(key, intent);
    const answer = await this.insist((client) => client.create('instance', body, { idempotencyKey: key }));
    this.trace(() => `create ${key} -> ${textOf(answer)}`);
    intent.outcome = answer instanceof ApiError ? 'refused' : 'accepted';
    if (answer instanceof ApiError) {
      if (this.#isQuotaRefusal(answer, body)) this.parts.tally.hit('quota-refused');
      else if (mayRefuse?.(answer.code) !== true)
        onViolation(3, `${this.name} was refused create ${key}: ${answer.code} ${answer.message}`);
      return undefined;
    }
    intent.instanceId = answer.metadata.id;
    return { id: answer.metadata.id, name: answer.metadata.name };
  }

  async deleteInstance(id: string, { project }: { readonly project?: string } = {}) {
    const { intents } = this.parts;
    intents.deletesAsked.add(id);
    const answer = await this.insist((client) =>
      client.delete('instance', id, project === undefined ? {} : { project }),
    );
    if (!(answer instanceof ApiError)) intents.deletesAccepted.add(id);
    return answer;
  }

  trace(line: () => string): void {
    this.parts.trace(() => `${this.name}: ${line()}`);
  }

  #isQuotaRefusal({ code }: ApiError, { metadata }: InstanceCreate['body']): boolean {
    const limited = this.parts.scenario.quota !== undefined && (metadata?.project ?? 'default') === 'default';
    return code === 'QuotaExceeded' && limited;
  }
}

/** A name in the network, with its client. */
export interface Line {
  readonly peer: Peer;
  readonly client: Client;
}

export function join(
  { timeline, network }: WorkloadParts,
  name: string,
  principal: Principal = { kind: 'admin' },
): Line {
  const peer: Peer = {
    name,
    clock: createProcessClock(timeline),
    principal,
    answerTimeoutMs,
  };
  return { peer, client: createClient({ fetch: network.fetchFor(peer), url: 'http://berth' }) };
}

/** An answer in a line of the trace. */
export function textOf(answer: { readonly metadata: Owned } | ApiError): string {
  return answer instanceof ApiError
    ? `${answer.code}: ${answer.message}`
    : `${answer.metadata.name} ${answer.metadata.id}`;
}

/** Undefined when there are none. */
export function pickOne<Item>(items: readonly Item[], prng: Prng): Item | undefined {
  return items[prng.below(Math.max(1, items.length))];
}
