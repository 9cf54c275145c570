// A claimant: a client of the Placement API that wants the same room as everyone else. It claims on hosts and on providers of its own, changes
// and drops its claims, moves inventories, uses generations that are old, and tries what only Berth may do.

import { ApiError } from '../../api/errors.ts';
import { isRecord } from '../../base/is-record.ts';
import { randomUuid } from '../../server/placement/wire/json-schema.ts';
import { type PlacementCall, type PlacementResult, placementDoorPath } from '../world/placement-door.ts';
import { type Caller, pickOne } from './caller.ts';

const providersMax = 4;
const consumersMax = 12;
const pauseMsMax = 1_500;
const owner = { project_id: 'claimant', user_id: 'claimant', consumer_type: 'INSTANCE' };

interface Listed {
  readonly uuid: string;
  readonly name: string;
  readonly generation: number;
}

type Wanted = Record<string, { readonly resources: Record<string, number> }>;

export class Claimant {
  readonly #caller: Caller;
  /** Its own providers and consumers, as far as it knows. */
  readonly #providers = new Set<string>();
  readonly #consumers = new Set<string>();
  /** All that it ever claimed for: a control plane that is behind may still show, and release, what another has released. */
  readonly #claimedFor = new Set<string>();

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(Math.min(pauseMsMax, 3 * parts.scenario.betweenCallsMsMean))) {
      const draw = prng.below(100);
      if (draw < 35 && this.#consumers.size < consumersMax) await this.#claimSome();
      else if (draw < 45) await this.#createProvider();
      else if (draw < 60) await this.#changeClaim();
      else if (draw < 72) await this.#drop(this.#someConsumer());
      else if (draw < 82) await this.#changeInventory();
      else if (draw < 90) await this.#reshape();
      else await this.#tryForbidden();
    }
    // What it held would be held for ever.
    for (const consumer of this.#consumers) await this.#drop(consumer);
  }

  /** Sometimes several at once, which want the same room. */
  async #claimSome(): Promise<void> {
    const { prng } = this.#caller;
    const count = prng.chance(1, 3) ? 1 + prng.below(4) : 1;
    const ask = { VCPU: 1 + prng.below(2), MEMORY_MB: 256 * (1 + prng.below(4)) };
    const resources = Object.entries(ask)
      .map(([name, amount]) => `${name}:${amount}`)
      .join(',');
    const found = await this.#ask('candidates', {
      method: 'GET',
      path: `/allocation_candidates?resources=${resources}&limit=3`,
    });
    const requests = listIn(found, 'allocation_requests');
    await Promise.all(
      Array.from({ length: count }, async (_, at) => {
        const candidate = requests[at % Math.max(1, requests.length)];
        const wanted = isRecord(candidate) ? candidate['allocations'] : undefined;
        if (isRecord(wanted)) await this.#put(randomUuid(prng), { ...wantedIn(wanted), ...this.#ofOwn() }, null);
      }),
    );
  }

  /** Room of one of its own providers, besides what a candidate has: a claim on both is made as a whole or not at all. */
  #ofOwn(): Wanted {
    const { prng } = this.#caller;
    const own = prng.chance(1, 3) ? pickOne([...this.#providers], prng) : undefined;
    return own === undefined ? {} : { [own]: { resources: { VCPU: 1 + prng.below(3) } } };
  }

  async #put(consumer: string, allocations: Wanted, generation: number | null): Promise<void> {
    this.#consumers.add(consumer); // before it is known: an answer may be lost
    this.#claimedFor.add(consumer);
    const body = { allocations, consumer_generation: generation, ...owner };
    const answer = await this.#ask('claim', { method: 'PUT', path: `/allocations/${consumer}`, body });
    if (answer?.status === 204) this.#caller.parts.tally.hit('outside-claimed');
  }

  async #createProvider(): Promise<void> {
    const { prng } = this.#caller;
    if (this.#providers.size >= providersMax) return;
    const uuid = randomUuid(prng);
    const parent = prng.chance(1, 3) ? pickOne([...this.#providers], prng) : undefined;
    const body = { uuid, name: `outside-${uuid}`, ...(parent === undefined ? {} : { parent_provider_uuid: parent }) };
    const made = await this.#ask('provider', { method: 'POST', path: '/resource_providers', body });
    if (made === undefined || made.status >= 300) return;
    this.#providers.add(uuid);
    await this.#writeInventory(uuid);
  }

  async #changeInventory(): Promise<void> {
    const { prng } = this.#caller;
    const uuid = pickOne([...this.#providers], prng);
    if (uuid !== undefined) await this.#writeInventory(uuid);
  }

  async #writeInventory(uuid: string): Promise<void> {
    const { prng } = this.#caller;
    const generation = await this.#generationOf(uuid);
    if (generation === undefined) return;
    const body = {
      resource_provider_generation: generation - (prng.chance(1, 6) ? 1 : 0),
      inventories: { VCPU: { total: 1 + prng.below(8), max_unit: 8 }, DISK_GB: { total: 10 } },
    };
    const answer = await this.#ask('inventory', {
      method: 'PUT',
      path: `/resource_providers/${uuid}/inventories`,
      body,
    });
    if (answer?.status === 409) this.#caller.parts.tally.hit('outside-generation-old');
  }

  async #changeClaim(): Promise<void> {
    const { prng } = this.#caller;
    const consumer = this.#someConsumer();
    if (consumer === undefined) return;
    const held = await this.#ask('read claim', { method: 'GET', path: `/allocations/${consumer}` });
    const all = isRecord(held?.json) ? held.json['allocations'] : undefined;
    if (!isRecord(all) || !isRecord(held?.json)) return;
    const next = Object.fromEntries(Object.keys(all).map((uuid) => [uuid, { resources: { VCPU: 1 + prng.below(3) } }]));
    const generation = Number(held.json['consumer_generation'] ?? 0) - (prng.chance(1, 6) ? 1 : 0);
    if (Object.keys(next).length > 0) await this.#put(consumer, next, generation);
  }

  async #drop(consumer: string | undefined): Promise<void> {
    if (consumer === undefined) return;
    const answer = await this.#ask('drop', { method: 'DELETE', path: `/allocations/${consumer}` });
    if (answer?.status === 204) this.#caller.parts.tally.hit('outside-dropped');
    if (answer?.status === 204 || answer?.status === 404) this.#consumers.delete(consumer);
  }

  /** Its inventory moves to another provider, with what is claimed of it; or nothing does. */
  async #reshape(): Promise<void> {
    const { prng } = this.#caller;
    const [from, to] = [pickOne([...this.#providers], prng), pickOne([...this.#providers], prng)];
    const consumer = this.#someConsumer();
    if (from === undefined || to === undefined || from === to || consumer === undefined) return;
    const [generation, other] = [await this.#generationOf(from), await this.#generationOf(to)];
    const held = await this.#ask('read claim', { method: 'GET', path: `/allocations/${consumer}` });
    if (generation === undefined || other === undefined || !isRecord(held?.json)) return;
    const { allocations: all, consumer_generation: seen } = held.json;
    if (!isRecord(all) || Object.keys(all).length === 0) return;
    const moved = Object.fromEntries(
      Object.entries(all).map(([uuid, each]) => [
        uuid === from ? to : uuid,
        { resources: isRecord(each) ? each['resources'] : {} },
      ]),
    );
    const body = {
      inventories: {
        [from]: { resource_provider_generation: generation, inventories: { DISK_GB: { total: 10 } } },
        [to]: { resource_provider_generation: other, inventories: { VCPU: { total: 16 }, DISK_GB: { total: 10 } } },
      },
      allocations: { [consumer]: { allocations: moved, consumer_generation: seen ?? null, ...owner } },
    };
    const answer = await this.#ask('reshape', { method: 'POST', path: '/reshaper', body });
    if (answer?.status === 204) this.#caller.parts.tally.hit('outside-reshaped');
  }

  /** What is the fleet's own is refused, whenever it is asked. */
  async #tryForbidden(): Promise<void> {
    const { prng, parts, name } = this.#caller;
    const listed = await this.#ask('list', { method: 'GET', path: '/resource_providers' });
    const hosts = listIn(listed, 'resource_providers')
      .flatMap(listedIn)
      .filter(({ name: of }) => !of.startsWith('outside-'));
    const host = pickOne(hosts, prng);
    if (host === undefined) return;
    const path = `/resource_providers/${host.uuid}`;
    const held = await this.#ask('held', { method: 'GET', path: `${path}/allocations` });
    const all = isRecord(held?.json) && isRecord(held.json['allocations']) ? Object.keys(held.json['allocations']) : [];
    const theirs = pickOne(
      all.filter((uuid) => !this.#claimedFor.has(uuid)),
      prng,
    );
    const generation = { resource_provider_generation: host.generation };
    const tries: PlacementCall[] = [
      { method: 'DELETE', path },
      { method: 'PUT', path, body: { name: `outside-${host.name}` } },
      { method: 'PUT', path: `${path}/inventories`, body: { ...generation, inventories: { VCPU: { total: 999 } } } },
      ...(theirs === undefined ? [] : [{ method: 'DELETE', path: `/allocations/${theirs}` } as const]),
    ];
    const call = pickOne(tries, prng);
    const answer = call && (await this.#ask('forbidden', call));
    // Deleted, released or removed meanwhile: not found.
    if (answer && ![404, 409].includes(answer.status))
      parts.onViolation(5, `${name} was answered ${answer.status} to ${call?.method} ${call?.path}`);
    if (answer?.status === 409) parts.tally.hit('outside-refused');
  }

  #someConsumer(): string | undefined {
    return pickOne([...this.#consumers], this.#caller.prng);
  }

  async #generationOf(uuid: string): Promise<number | undefined> {
    const answer = await this.#ask('generation', { method: 'GET', path: `/resource_providers/${uuid}` });
    return answer?.status === 200 && isRecord(answer.json) ? Number(answer.json['generation']) : undefined;
  }

  /** Undefined: our own API refused the request that carries it. */
  async #ask(what: string, body: PlacementCall): Promise<PlacementResult | undefined> {
    const answer = await this.#caller.insist((client) =>
      client.json<PlacementResult>(placementDoorPath, { method: 'POST', body }),
    );
    this.#caller.trace(
      () => `${what} ${body.method} ${body.path} -> ${answer instanceof ApiError ? answer.message : answer.status}`,
    );
    return answer instanceof ApiError ? undefined : answer;
  }
}

function wantedIn(value: Readonly<Record<string, unknown>>): Wanted {
  return value as Wanted; // a candidate is sent back as it came
}

function listedIn(value: unknown): Listed[] {
  if (!isRecord(value)) return [];
  return [{ uuid: String(value['uuid']), name: String(value['name']), generation: Number(value['generation']) }];
}

function listIn(answer: PlacementResult | undefined, name: string): readonly unknown[] {
  const list = isRecord(answer?.json) ? answer.json[name] : undefined;
  return Array.isArray(list) ? list : [];
}
