// Allocations of outside consumers: all that a request asks for in one Plan, or nothing. A claim rewrites each provider that it
// touches, and the root of a host of ours, as a claim of an instance does: of two on the same view only one commits.

import { capacityOf } from '../../ledger/ledger.ts';
import type { Amounts } from '../../../api/resources/metadata.ts';
import { keys } from '../../state/keys.ts';
import type { Context } from '../../state/context.ts';
import type { Plan } from '../../state/plan.ts';
import type { Allocation, OutsideConsumer, Provider } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { placementIndexOf } from '../../state/views/placement-index.ts';
import { Draft } from './draft.ts';
import { badRequest, conflict, notFound, ours, placementCodes } from './fault.ts';
import { isKnownName, unknownClass } from './names.ts';

/** What a consumer shall hold after the request, and nothing else. */
export interface ConsumerClaim {
  readonly consumer: string;
  /** By provider UUID. Empty: it holds nothing any more. */
  readonly amounts: ReadonlyMap<string, Amounts>;
  readonly project: string;
  readonly user: string;
  /** Undefined: stays what it is. */
  readonly type: string | undefined;
  /** Of the consumer as the client saw it; null: there was none. Undefined: the client does not say. */
  readonly generation: number | null | undefined;
}

/** How a refusal begins. */
export interface Wording {
  /** Before "No such resource class". */
  readonly unknownClass: string;
}

/** The consumer of the Placement API with this id; undefined while it holds nothing. */
export function outsideConsumerOf(snapshot: Snapshot, id: string): OutsideConsumer | undefined {
  if (snapshot.allocationsOfConsumer(id).length === 0) return undefined;
  return snapshot.get('outsideConsumer', keys.outsideConsumer(id))?.value;
}

export function setAllocations(
  snapshot: Snapshot,
  claims: readonly ConsumerClaim[],
  wording: Wording,
  ctx: Context,
): { plan: Plan } {
  const draft = new Draft(snapshot);
  draftClaims(draft, claims, wording, ctx);
  return { plan: draft.plan() };
}

/** Adds the claims to what the request changes besides. */
export function draftClaims(draft: Draft, claims: readonly ConsumerClaim[], wording: Wording, ctx: Context): void {
  const { snapshot } = draft;
  for (const claim of claims) assertGeneration(snapshot, claim);
  const asked = claims.flatMap((claim) => partsOf(snapshot, claim));
  for (const { amounts } of asked)
    for (const name of Object.keys(amounts))
      if (!isKnownName(snapshot, 'class', name))
        throw badRequest(`${wording.unknownClass}${unknownClass(name).message}`);
  assertRoom(draft, claims, asked);
  for (const id of touchedBy(draft, claims, asked)) draft.countOn(id);
  for (const claim of claims)
    write(
      draft,
      claim,
      asked.filter((part) => part.claim === claim),
      ctx,
    );
}

/** Providers that the claims count on, each once. As in the original, a release by an empty claim counts, a deletion does not. */
function touchedBy(draft: Draft, claims: readonly ConsumerClaim[], asked: readonly Part[]): ReadonlySet<string> {
  const { snapshot } = draft;
  const touched = new Set<string>();
  for (const { providerId } of asked) {
    touched.add(providerId);
    const { outside, host } = draft.provider(providerId);
    if (outside) continue;
    for (const { value } of snapshot.providersOfHost(host)) if (value.parent === null) touched.add(value.id);
  }
  for (const { consumer, amounts } of claims) {
    if (amounts.size > 0) continue;
    for (const { value } of snapshot.allocationsOfConsumer(consumer))
      for (const id of Object.keys(value.amounts)) if (snapshot.get('provider', keys.provider(id))) touched.add(id);
  }
  return touched;
}

export function deleteAllocations(snapshot: Snapshot, uuid: string): { plan: Plan } {
  assertOutsideConsumer(snapshot, uuid);
  const held = snapshot.allocationsOfConsumer(uuid);
  if (held.length === 0) throw notFound(`No allocations for consumer '${uuid}'`);
  const draft = new Draft(snapshot);
  for (const { key } of held) draft.remove('allocation', key);
  draft.remove('outsideConsumer', keys.outsideConsumer(uuid));
  return { plan: draft.plan() };
}

function assertOutsideConsumer(snapshot: Snapshot, uuid: string): void {
  const id = placementIndexOf(snapshot).consumerOf(uuid);
  if (id === uuid) return;
  const consumer = snapshot.allocationsOfConsumer(id)[0]?.value.consumer;
  const what = `${consumer?.kind ?? 'instance'} ${consumer?.project}/${consumer?.name}`;
  throw ours(`consumer ${uuid} (${what})`, 'its room is released when it is deleted');
}

function assertGeneration(snapshot: Snapshot, { consumer, generation }: ConsumerClaim): void {
  assertOutsideConsumer(snapshot, consumer);
  if (generation === undefined) return;
  const known = outsideConsumerOf(snapshot, consumer);
  const [expected, given] = [known?.generation ?? null, generation];
  if (expected === given) return;
  throw conflict(
    `consumer generation conflict - expected ${expected ?? 'null'} but got ${given ?? 'None'}`,
    placementCodes.concurrentUpdate,
  );
}

interface Part {
  readonly claim: ConsumerClaim;
  readonly uuid: string;
  readonly providerId: string;
  readonly amounts: Amounts;
}

function partsOf(snapshot: Snapshot, claim: ConsumerClaim): Part[] {
  const index = placementIndexOf(snapshot);
  return [...claim.amounts].map(([uuid, amounts]) => {
    const providerId = index.idOf(uuid);
    if (providerId === undefined) throw badRequest(`Allocation for resource provider '${uuid}' that does not exist.`);
    return { claim, uuid, providerId, amounts };
  });
}

/** Throws `Conflict` for the first part that does not fit beside what all other consumers hold. */
function assertRoom(draft: Draft, claims: readonly ConsumerClaim[], asked: readonly Part[]): void {
  const { snapshot } = draft;
  const released = heldBy(snapshot, claims);
  const classes = [...new Set(asked.flatMap(({ amounts }) => Object.keys(amounts)))];
  const without = [...new Set(asked.map(({ providerId }) => providerId))].filter(
    (id) => !classes.some((name) => Object.hasOwn(draft.provider(id).inventories, name)),
  );
  const index = placementIndexOf(snapshot);
  if (without.length > 0) throw invalidInventory(classes.join(', '), without.map((id) => index.uuidOf(id)).join(', '));
  const taken = new Map<string, number>();
  for (const { uuid, providerId, amounts } of asked) {
    const provider = draft.provider(providerId);
    for (const [name, amount] of Object.entries(amounts)) {
      const key = `${providerId} ${name}`;
      const before = taken.get(key) ?? 0;
      const others = (snapshot.usedBy(providerId).get(name) ?? 0) - (released.get(key) ?? 0) + before;
      assertFits(provider, { uuid, name, amount, others });
      taken.set(key, before + amount);
    }
  }
}

interface Wanted {
  readonly uuid: string;
  readonly name: string;
  readonly amount: number;
  readonly others: number;
}

function assertFits(provider: Provider, { uuid, name, amount, others }: Wanted): void {
  const inventory = Object.hasOwn(provider.inventories, name) ? provider.inventories[name] : undefined;
  if (!inventory) throw invalidInventory(name, uuid);
  const sorry = `Unable to allocate inventory: Unable to create allocation for '${name}' on resource provider '${uuid}'. The requested amount would`;
  const { minUnit, maxUnit, stepSize } = inventory;
  if (amount < minUnit || amount > maxUnit || amount % stepSize !== 0)
    throw conflict(`${sorry} violate inventory constraints.`);
  if (others + amount > capacityOf(inventory)) throw conflict(`${sorry} exceed the capacity.`);
}

function invalidInventory(classes: string, uuids: string): Error {
  return conflict(`Unable to allocate inventory: Inventory for '${classes}' on resource provider '${uuids}' invalid.`);
}

/** What these consumers hold now, by provider id and class. */
function heldBy(snapshot: Snapshot, claims: readonly ConsumerClaim[]): ReadonlyMap<string, number> {
  const held = new Map<string, number>();
  for (const { consumer } of claims)
    for (const { value } of snapshot.allocationsOfConsumer(consumer))
      for (const [id, amounts] of Object.entries(value.amounts))
        for (const [name, amount] of Object.entries(amounts))
          held.set(`${id} ${name}`, (held.get(`${id} ${name}`) ?? 0) + amount);
  return held;
}

/** Writes one consumer's allocations: one for each host, and for each outside provider. */
function write(draft: Draft, claim: ConsumerClaim, parts: readonly Part[], ctx: Context): void {
  const { snapshot } = draft;
  const { consumer: id, project, user, type } = claim;
  const before = snapshot.allocationsOfConsumer(id);
  const known = outsideConsumerOf(snapshot, id);
  if (parts.length === 0) {
    for (const { key } of before) draft.remove('allocation', key);
    draft.remove('outsideConsumer', keys.outsideConsumer(id));
    return;
  }
  const byGroup = new Map<string, Record<string, Amounts>>();
  for (const { providerId, amounts } of parts) {
    const { host } = draft.provider(providerId);
    const group = byGroup.get(host) ?? {};
    group[providerId] = amounts;
    byGroup.set(host, group);
  }
  for (const { key, value } of before) if (!byGroup.has(value.host)) draft.remove('allocation', key);
  const numbers = new Set(before.map(({ value }) => value.consumer.incarnation));
  for (const [host, amounts] of byGroup) {
    const incarnation = numberFor(host, before, numbers);
    const value: Allocation = {
      kind: 'allocation',
      consumer: { kind: 'outside', id, incarnation, project, name: id },
      host,
      amounts,
      driver: '',
    };
    draft.putAt(keys.allocation(id, incarnation), value);
  }
  const typed = type ?? known?.type;
  draft.put({
    kind: 'outsideConsumer',
    id,
    project,
    user,
    ...(typed === undefined ? {} : { type: typed }),
    generation: (known?.generation ?? 0) + 1,
    changedAtMs: ctx.nowMs,
  });
}

/** That of its allocation there, else the lowest that is free. */
function numberFor(host: string, before: readonly Entry<Allocation>[], numbers: Set<number>): number {
  const there = before.find(({ value }) => value.host === host);
  if (there) return there.value.consumer.incarnation;
  let number = 1;
  while (numbers.has(number)) number += 1;
  numbers.add(number);
  return number;
}
