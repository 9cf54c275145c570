// Which hosts to empty so that what runs needs fewer of them: the planner of moves chooses the hosts, and each is then planned as a drain with
// the real scheduler, beside the others. Pure; nothing is reserved.

import type { DrainOptions } from '../../api/plans/host-plan.ts';
import type { EmptiedHost, RebalanceOptions, RebalancePlan } from '../../api/plans/rebalance.ts';
import type { Host } from '../../api/resources/host.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import { sha256 } from '../../base/sha256.ts';
import { type Movable, type PackedHost, planMoves } from '../scheduler/packing/consolidate.ts';
import { type Fleet, fleetOf } from '../scheduler/fleet.ts';
import { isDraining, isReady } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { guestsOfPlan, type Seated } from './drain.ts';
import { type Found, guestsOn, isLive, type Mover } from './guests-on.ts';

/** Hosts are closed while they are emptied, and opened again. */
export function drainOptionsOf({ movesMax }: RebalanceOptions, hosts: number): DrainOptions {
  return {
    stopOthers: false,
    movesMax: Math.max(1, Math.floor(movesMax / Math.max(1, hosts))),
    deadlineMs: 3_600_000,
    atDeadline: 'leave',
    thenOpen: true,
  };
}

export function planRebalance(snapshot: Snapshot, options: RebalanceOptions, ctx: Context): RebalancePlan {
  const looked = lookAt(snapshot, options, ctx);
  const classes = Array.from(fleetOf(snapshot).columns(), ({ resourceClass }) => resourceClass);
  const chosen = emptiable(looked, { ...options, classes }, (guest) => mayLeave(guest, options)).slice(
    0,
    options.movesMax,
  );
  const planned = drainsOf(snapshot, chosen, options);
  const hosts = planned.length < options.emptiedMin ? [] : planned;
  const emptied = new Set(hosts.map(({ host }) => host));
  const others = looked.filter(({ host }) => !emptied.has(host.metadata.name));
  const needMigration = migratable(others, { ...options, classes });
  const used = looked.filter(({ found }) => found.length > 0).length;
  const agreed = hosts.map(({ hostId, guests }) => [
    hostId,
    guests.map(({ id, generation, incarnation, action, targetId = null }) => [
      ...[id, generation, incarnation, action, targetId],
    ]),
  ]);
  return {
    hash: sha256(canonicalJson({ verb: 'rebalance', options: { ...options }, agreed })).slice(0, 32),
    ...{ options, hosts, needMigration },
    inUse: { before: used, after: used - hosts.length },
    moves: hosts.reduce((sum, { guests }) => sum + guests.length, 0),
  };
}

/** A cold move stops its guest: a plan for many does not do that unasked. */
function mayLeave(guest: Found['guest'], { moves }: Pick<RebalanceOptions, 'moves'>): boolean {
  if (guest.action === 'replace') return true;
  return guest.action === 'move' && (moves === 'cold' || (moves === 'live' && isLive(guest)));
}

/** What could be emptied only by moves that the options do not permit. */
function migratable(
  others: readonly Looked[],
  options: RebalanceOptions & { readonly classes: readonly string[] },
): EmptiedHost[] {
  const any = emptiable(others, options, (guest) => mayLeave(guest, { moves: 'cold' }));
  return any
    .filter(({ found }) => found.some(({ guest }) => !mayLeave(guest, options)))
    .map(({ host, found }) => ({
      host: host.metadata.name,
      hostId: host.metadata.id,
      guests: found.map(({ guest }) => guest),
    }));
}

interface Looked {
  readonly host: Host;
  readonly slot: number;
  readonly found: readonly Found[];
  /** It is used too much, or something on it was placed a short time ago. */
  readonly kept: boolean;
  readonly packed: Pick<PackedHost<Movable>, 'free' | 'capacity'>;
}

/** Hosts that take instances, by name. */
function lookAt(
  snapshot: Snapshot,
  { pool, thresholdPercent, coolDownMs }: RebalanceOptions,
  { nowMs }: Context,
): readonly Looked[] {
  const fleet = fleetOf(snapshot);
  const looked: Looked[] = [];
  for (const { value: host } of snapshot.list('host')) {
    const { spec, status, metadata } = host;
    const slot = fleet.slotOf(metadata.name);
    if (slot === undefined || spec.paused || status.outside || isDraining(host) || !isReady(status)) continue;
    if (pool !== undefined && (spec.pool ?? 'default') !== pool) continue;
    const found = guestsOn(snapshot, { verb: 'drain', host: metadata.name, options: asked });
    const packed = roomOf(fleet, slot);
    const used = Math.max(0, ...packed.capacity.map((all, i) => (all > 0 ? 1 - (packed.free[i] ?? 0) / all : 0)));
    const young = found.some(({ mover }) => (mover?.instance.status.scheduledAtMs ?? 0) > nowMs - coolDownMs);
    looked.push({ host, slot, found, kept: 100 * used > thresholdPercent || young, packed });
  }
  return looked.sort((a, b) => (a.host.metadata.name < b.host.metadata.name ? -1 : 1));
}

const asked: DrainOptions = { stopOthers: false, movesMax: 1, deadlineMs: 1_000, atDeadline: 'leave' };

function roomOf(fleet: Fleet, slot: number): Looked['packed'] {
  const columns = [...fleet.columns()];
  const capacity = columns.map((column) => column.capacity(slot));
  return { capacity, free: columns.map((column, i) => Math.max(0, (capacity[i] ?? 0) - column.used(slot))) };
}

/** Hosts that are empty after the moves of the planner. What is `movable` may move, and nothing else. */
function emptiable(
  looked: readonly Looked[],
  { budget, classes }: RebalanceOptions & { readonly classes: readonly string[] },
  movable: (guest: Found['guest']) => boolean,
): readonly Looked[] {
  const shapes: number[][] = [];
  const known = new Map<string, number>();
  const shapeOf = ({ amounts }: Found['guest']): number => {
    const shape = classes.map((of) => amounts[of] ?? 0);
    const key = shape.join(' ');
    let index = known.get(key);
    if (index === undefined) known.set(key, (index = shapes.push(shape) - 1));
    return index;
  };
  const hosts = looked.map(({ found, kept, packed }) => ({
    ...packed,
    instances: found.map(
      ({ guest, mover }): Movable => ({ shape: kept || isBound(mover) || !movable(guest) ? -1 : shapeOf(guest) }),
    ),
  }));
  const moves = planMoves({ hosts, shapes, ...price, lastOpenS: shapes.map(() => 0), budget });
  const from = new Set(moves.map((move) => move.from));
  return looked.filter((_, i) => from.has(i));
}

/** It stays on its host unless a person names it: its workload has one copy per host, or it is protected. */
function isBound(mover: Mover | undefined): boolean {
  return mover?.last === true || mover?.instance.spec.protected === true;
}

/** The moves are asked for: none costs too much. */
const price = { nowS: 0, lifetimeS: 0, budgetScale: 1 } as const;

/**
 * Each with all others closed, and with what has left before. A host that would not become empty is left out, and one whose instances would
 * go to an idle host: as many hosts would be in use as before, and the next plan would move them back.
 */
function drainsOf(snapshot: Snapshot, chosen: readonly Looked[], options: RebalanceOptions): EmptiedHost[] {
  let closed = chosen.map(({ host }) => host.metadata.name);
  const seated: Seated[] = [];
  const hosts: EmptiedHost[] = [];
  for (const { host } of chosen) {
    const { name, id } = host.metadata;
    const drained = { verb: 'drain', host: name, options: drainOptionsOf(options, chosen.length) } as const;
    const made = guestsOfPlan(snapshot, drained, { closed, seated });
    const leave = made.guests.every((guest) => mayLeave(guest, options) && guest.target !== undefined);
    if (leave && !made.guests.some(({ target = '' }) => isIdle(snapshot, target))) {
      hosts.push({ host: name, hostId: id, guests: made.guests });
      seated.push(...made.seated);
    } else closed = closed.filter((each) => each !== name);
  }
  return hosts;
}

function isIdle(snapshot: Snapshot, host: string): boolean {
  const [any] = snapshot.allocationsOnHost(host);
  return any === undefined;
}
