// Brings hosts in line with the list of an inventory: a few at a time, and only those that differ. The owner's list wins over what is
// here, but for what operators alone decide: whether a host is paused, its labels and its taints.

import type { Host, HostStatus, OutsideHost } from '../../../api/resources/host.ts';
import type { Amounts } from '../../../api/resources/metadata.ts';
import { equalJson } from '../../../base/equal-json.ts';
import { type NewCondition, conditionOf, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Change, Plan } from '../../state/plan.ts';
import type { Allocation } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { newMetadata } from '../create.ts';
import { providerChanges } from '../host-providers.ts';
import type { Node } from './read-nodes.ts';

/** A host is gone when this many consecutive lists do not contain it. */
export const missedMax = 3;

export interface NodesOf {
  readonly inventory: string;
  readonly nodes: readonly Node[];
  /** Of nodes that name none. */
  readonly pool?: string | undefined;
  /** When the list was asked for, or came by itself. */
  readonly asOfMs: number;
  /** Holds that were older then are part of the reported usage. */
  readonly settleMs: number;
}

export interface Applied {
  readonly plan: Plan;
  /** Nodes left out, because their name is that of another host. */
  readonly refused: readonly { readonly name: string; readonly why: string }[];
}

/** Hosts for these nodes. An empty Plan when they are so already. */
export function applyNodes(snapshot: Snapshot, of: NodesOf, ctx: Context): Applied {
  const changes: Change[] = [];
  const refused: { name: string; why: string }[] = [];
  for (const node of of.nodes) {
    const entry = snapshot.get('host', keys.host(node.name));
    const why = entry && whyNotOurs(snapshot, entry.value, of.inventory);
    if (why === undefined) changes.push(...changesOfNode(snapshot, { entry, node, of }, ctx));
    else refused.push({ name: node.name, why });
  }
  return { plan: { changes }, refused };
}

function whyNotOurs(snapshot: Snapshot, { status, metadata }: Host, inventory: string): string | undefined {
  const origin = status.outside?.inventory;
  if (origin === inventory) return undefined;
  if (origin === undefined) return `host "${metadata.name}" exists already, with an agent of its own`;
  return snapshot.get('inventory', keys.inventory(origin)) ? `it is in inventory "${origin}", too` : undefined;
}

interface NodeChange {
  readonly entry: Entry<Host> | undefined;
  readonly node: Node;
  readonly of: NodesOf;
}

function changesOfNode(snapshot: Snapshot, { entry, node, of }: NodeChange, ctx: Context): Change[] {
  const before = entry?.value;
  const host = hostOf(snapshot, { before, node, of }, ctx);
  const providers = providerChanges(snapshot, { before, host }, ctx.policy);
  if (before && sameButTime(before, host)) return providers;
  // No event: 50,000 would push all others out. The inventory says how many hosts it has.
  return [{ key: keys.host(node.name), ifRevision: entry?.revision ?? 0, value: host }, ...providers];
}

/** Ratios of 1: the owner's amounts are real ones. */
const allocationRatios = { VCPU: 1, MEMORY_MB: 1, DISK_GB: 1 } as const;
const unseen: HostStatus = { epoch: 0, drivers: [], images: [], unknownGuests: [], conditions: [] };

function hostOf(
  snapshot: Snapshot,
  { before, node, of }: { readonly before: Host | undefined; readonly node: Node; readonly of: NodesOf },
  ctx: Context,
): Host {
  const { name, usage, capacity, dedicated, guestsMax, guests = 0, model, ip } = node;
  const settled = settledOn(snapshot, name, of.asOfMs - of.settleMs);
  const status = before?.status ?? unseen;
  const { pool: _pool, dedicated: _dedicated, instancesMax: _max, ...kept } = before?.spec ?? { paused: false };
  const pool = node.pool ?? of.pool;
  const origin: OutsideHost = {
    inventory: of.inventory,
    usage,
    reportedAtMs: ctx.nowMs,
    ...(ip === undefined ? {} : { ip }),
    ...(model === undefined ? {} : { model }),
  };
  return {
    kind: 'host',
    schemaVersion,
    metadata:
      before?.metadata ?? newMetadata(ctx.newId('host'), { project: '', name, labels: {}, spec: undefined }, ctx),
    spec: {
      ...kept,
      allocationRatios,
      ...(pool === undefined ? {} : { pool }),
      ...(dedicated ? { dedicated } : {}),
      ...(guestsMax === undefined
        ? {}
        : { instancesMax: Math.max(0, guestsMax - Math.max(0, guests - settled.count)) }),
    },
    status: {
      ...status,
      capacity,
      reserved: foreignUse(usage, settled.amounts),
      outside: origin,
      registeredAtMs: status.registeredAtMs ?? ctx.nowMs,
      conditions: ready(status, { reason: 'InInventory', message: `it is in inventory ${of.inventory}` }, ctx),
    },
  };
}

function ready(
  { conditions }: HostStatus,
  { reason, message, ok = true }: Pick<NewCondition, 'reason' | 'message'> & { readonly ok?: boolean },
  { nowMs }: Context,
): HostStatus['conditions'] {
  const status = ok ? 'True' : 'False';
  const known = conditionOf(conditions, 'Ready');
  if (known?.status === status && known.reason === reason && known.message === message) return conditions;
  return withConditions(conditions, [{ type: 'Ready', status, reason, message }], nowMs);
}

/** The usage that is not ours. A hold that its owner has not yet seen is not in the usage, so that only settled ones are subtracted. */
function foreignUse(usage: Amounts, ours: ReadonlyMap<string, number>): Amounts {
  return Object.fromEntries(Object.entries(usage).map(([of, used]) => [of, Math.max(0, used - (ours.get(of) ?? 0))]));
}

/** What tasks placed before `untilMs` hold there. */
function settledOn(snapshot: Snapshot, host: string, untilMs: number) {
  const amounts = new Map<string, number>();
  let count = 0;
  for (const { value } of snapshot.allocationsOnHost(host)) {
    if (sinceMs(snapshot, value) > untilMs) continue;
    count += 1;
    for (const held of Object.values(value.amounts))
      for (const [of, amount] of Object.entries(held)) amounts.set(of, (amounts.get(of) ?? 0) + amount);
  }
  return { amounts, count };
}

function sinceMs(snapshot: Snapshot, { consumer: { project, name } }: Allocation): number {
  const task = snapshot.get('task', keys.task(project, name))?.value;
  return task?.status.placedAtMs ?? Number.POSITIVE_INFINITY;
}

function sameButTime(before: Host, after: Host): boolean {
  const { outside: was, ...statusBefore } = before.status;
  const { outside: is, ...statusAfter } = after.status;
  if (was === undefined || is === undefined) return false;
  return (
    equalJson({ ...was, reportedAtMs: 0 }, { ...is, reportedAtMs: 0 }) &&
    equalJson(before.spec, after.spec) &&
    equalJson(statusBefore, statusAfter)
  );
}

/**
 * Hosts that the list lacks. `atOnce`: it is the last list that they had to be in. One on which nothing is held is removed; on others
 * nothing more is placed.
 */
export function applyAbsent(
  snapshot: Snapshot,
  {
    inventory,
    hosts,
    atOnce,
  }: { readonly inventory: string; readonly hosts: readonly string[]; readonly atOnce: boolean },
  ctx: Context,
): { readonly plan: Plan } {
  const changes: Change[] = [];
  for (const name of hosts) {
    const entry = snapshot.get('host', keys.host(name));
    const origin = entry?.value.status.outside;
    if (!entry || origin?.inventory !== inventory) continue;
    const missed = atOnce ? missedMax : Math.min(missedMax, (origin.missed ?? 0) + 1);
    const isHeld = [...snapshot.allocationsOnHost(name)].length > 0;
    if (missed >= missedMax && !isHeld) changes.push(...removal(snapshot, entry, ctx));
    else if (missed !== origin.missed) changes.push(missedChange(entry, { ...origin, missed }, ctx));
  }
  return { plan: { changes } };
}

function missedChange({ key, revision, value }: Entry<Host>, origin: OutsideHost, ctx: Context): Change {
  const gone = origin.missed === missedMax;
  const message = `it is no longer in inventory ${origin.inventory}`;
  const conditions = gone
    ? ready(value.status, { reason: 'NotInInventory', message, ok: false }, ctx)
    : value.status.conditions;
  return { key, ifRevision: revision, value: { ...value, status: { ...value.status, outside: origin, conditions } } };
}

/** The marks of its providers are conditions: a task that was placed in between is not left without its host. */
function removal(snapshot: Snapshot, { key, revision, value }: Entry<Host>, ctx: Context): Change[] {
  const { name } = value.metadata;
  const message = `no longer in inventory ${value.status.outside?.inventory ?? ''}, and nothing is held there`;
  return [
    { key, ifRevision: revision, value: null },
    ...snapshot.providersOfHost(name).map((provider) => ({
      key: provider.key,
      ifRevision: provider.revision,
      value: null,
    })),
    eventChange(value, { type: 'Warning', reason: 'HostRemoved', message, host: name }, ctx),
  ];
}
