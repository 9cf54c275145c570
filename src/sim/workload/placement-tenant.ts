// A tenant of the placement service: asks for room with /schedule, asks again under the same key, reads the result, and gives the room up, or
// leaves that to the time limit.

import { ApiError } from '../../api/errors.ts';
import type { ScheduleRequest, ScheduleResult } from '../../api/routes/schedule.ts';
import type { Client } from '../../api/client/client.ts';
import { type Caller, pickOne } from './caller.ts';

interface Asked {
  readonly key: string;
  readonly id: string;
  readonly request: ScheduleRequest;
  /** Left to the time limit. */
  readonly kept: boolean;
  /** The host of a completed result. */
  host?: string;
  failed?: true;
}

const askedMax = 40;
/** Room that is held for seconds only must be asked for often. */
const pauseMsMax = 1_200;

export class PlacementTenant {
  readonly #caller: Caller;
  readonly #asked: Asked[] = [];
  #keys = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(Math.min(pauseMsMax, 3 * parts.scenario.betweenCallsMsMean))) {
      const draw = prng.below(100);
      const asked = pickOne(this.#asked, prng);
      if (asked === undefined || (draw < 45 && this.#keys < askedMax)) await this.#askSome();
      else if (draw < 75) await this.#read(asked);
      else if (draw < 85) await this.#askAgain(asked);
      else if (!asked.kept) await this.#release(asked);
    }
    for (const asked of [...this.#asked]) if (!asked.kept) await this.#release(asked);
  }

  /** Sometimes several at once, which want the same room. */
  async #askSome(): Promise<void> {
    const { prng } = this.#caller;
    const count = prng.chance(1, 3) ? 1 + prng.below(5) : 1;
    await Promise.all(Array.from({ length: count }, () => this.#ask()));
  }

  async #ask(): Promise<void> {
    const { prng, name } = this.#caller;
    const key = `${name}-${++this.#keys}`;
    const request = {
      requested_cpu: 1 + prng.below(4),
      requested_memory: 256 * (1 + prng.below(8)),
      ...(prng.chance(1, 2) ? { requested_pool: 'outside' } : {}),
      dedicated: prng.chance(1, 8),
    };
    const id = await this.#post(key, request);
    if (id !== undefined) this.#asked.push({ key, id, request, kept: prng.chance(1, 2) });
  }

  async #askAgain({ key, id, request }: Asked): Promise<void> {
    const { parts, name } = this.#caller;
    const again = await this.#post(key, request);
    parts.tally.hit('schedule-repeated');
    if (again !== undefined && again !== id)
      parts.onViolation(4, `${name} asked twice with key ${key}, and was answered ${id} and ${again}`);
  }

  async #post(key: string, body: ScheduleRequest): Promise<string | undefined> {
    const { parts, name } = this.#caller;
    const call = { method: 'POST' as const, body, headers: { 'idempotency-key': key } };
    const answer = await this.#caller.insist((client: Client) => client.json<{ task_id: string }>('/schedule', call));
    this.#caller.trace(() => `schedule ${key} -> ${answer instanceof ApiError ? answer.message : answer.task_id}`);
    if (answer instanceof ApiError) {
      // The hosts of the pool come and go.
      if (answer.code !== 'InvalidRequest' || body.requested_pool === undefined)
        parts.onViolation(3, `${name} was refused schedule ${key}: ${answer.code} ${answer.message}`);
      return undefined;
    }
    parts.tally.hit('schedule-accepted');
    parts.intents.schedules.set(answer.task_id, { key, released: false });
    return answer.task_id;
  }

  /** Not found: this control plane may not know it yet, or its record is gone since. */
  async #read(asked: Asked): Promise<void> {
    const { parts, prng } = this.#caller;
    const path = `/${prng.chance(1, 2) ? 'result' : 'schedule'}/${asked.id}`;
    const answer = await this.#caller.insist((client: Client) => client.json<ScheduleResult>(path));
    if (answer instanceof ApiError || answer.status === 'processing') return;
    parts.tally.hit(`schedule-${answer.status}`);
    const fault = answer.status === 'completed' ? completed(asked, answer.result.name) : failed(asked, answer.error);
    if (fault !== undefined) parts.onViolation(4, `the result of ${asked.key} (${asked.id}) ${fault}`);
  }

  async #release(asked: Asked): Promise<void> {
    const { parts } = this.#caller;
    const { id, key } = asked;
    this.#asked.splice(this.#asked.indexOf(asked), 1);
    for (let times = this.#caller.prng.chance(1, 4) ? 2 : 1; times > 0; times--) {
      const answer = await this.#caller.insist((client: Client) =>
        client.json<{ status: string }>(`/schedule/${id}`, { method: 'DELETE' }),
      );
      this.#caller.trace(
        () => `release ${key} ${id} -> ${answer instanceof ApiError ? answer.message : answer.status}`,
      );
      if (answer instanceof ApiError) return;
      parts.intents.schedules.set(id, { key, released: true });
      parts.tally.hit('schedule-released');
    }
  }
}

function completed(asked: Asked, host: string): string | undefined {
  if (asked.failed) return `was "No available nodes", and is ${host}`;
  if (asked.host !== undefined && asked.host !== host) return `was ${asked.host}, and is ${host}`;
  asked.host = host;
  return undefined;
}

function failed(asked: Asked, error: string): string | undefined {
  if (!error.startsWith('No available nodes: '))
    return error.startsWith('the room is released: ') ? undefined : `has another error: ${error}`;
  if (asked.host !== undefined) return `was ${asked.host}, and is ${error}`;
  asked.failed = true;
  return undefined;
}
