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
import { type Found, guestsOn } from './guests-on.ts';

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
  const chosen = emptiable(looked, { ...options, classes }, ({ action }) => action === 'replace').slice(
    0,
    options.movesMax,
  );
  const hosts = drainsOf(snapshot, chosen, options);
  const emptied = new Set(hosts.map(({ host }) => host));
  const others = looked.filter(({ host }) => !emptied.has(host.metadata.name));
  // A cold move stops its guest: a plan for many does not do that unasked.
  const movable = ({ action }: Found['guest']): boolean => action === 'replace' || action === 'move';
  const needMigration = emptiable(others, { ...options, classes }, movable).map(({ host, found }) => ({
    host: host.metadata.name,
    hostId: host.metadata.id,
    guests: found.map(({ guest }) => guest),
  }));
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
    if (pool !== undefined && spec.pool !== pool) continue;
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
      ({ guest, mover }): Movable => ({ shape: kept || mover?.last || !movable(guest) ? -1 : shapeOf(guest) }),
    ),
  }));
  const moves = planMoves({ hosts, shapes, ...price, lastOpenS: shapes.map(() => 0), budget });
  const from = new Set(moves.map((move) => move.from));
  return looked.filter((_, i) => from.has(i));
}

/** A person asks for the moves: none costs too much. */
const price = { nowS: 0, lifetimeS: 0, budgetScale: 1 } as const;

/** Each with all others closed, and with what has left before. A host that would not become empty is left out. */
function drainsOf(snapshot: Snapshot, chosen: readonly Looked[], options: RebalanceOptions): EmptiedHost[] {
  let closed = chosen.map(({ host }) => host.metadata.name);
  const seated: Seated[] = [];
  const hosts: EmptiedHost[] = [];
  for (const { host } of chosen) {
    const { name, id } = host.metadata;
    const drained = { verb: 'drain', host: name, options: drainOptionsOf(options, chosen.length) } as const;
    const made = guestsOfPlan(snapshot, drained, { closed, seated });
    if (made.guests.every(({ action, target }) => action === 'replace' && target !== undefined)) {
      hosts.push({ host: name, hostId: id, guests: made.guests });
      seated.push(...made.seated);
    } else closed = closed.filter((each) => each !== name);
  }
  return hosts;
}
