// Count more: how many instances of a request fit in addition to the present ones. A trial places one after the other
// until the rules refuse. When the ledger knows how many equal ones fit on one provider, they are claimed at once, and
// the rules then confirm the last.

import type { Capacity, SizeCapacity } from '../../api/capacity.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { copiesOf } from '../ledger/most.ts';
import { assign } from '../ledger/tree.ts';
import type { Allocation } from '../state/records.ts';
import { isReady } from '../state/conditions.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type Fleet, fleetOf } from '../scheduler/fleet.ts';
import { type HostVerdict, verdictsOf } from '../scheduler/engine/full-scan.ts';
import type { Request } from '../scheduler/request.ts';
import { engineOf, placementAt } from '../scheduler/schedule.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import { hostsPerStep, type Steps } from '../scheduler/steps.ts';

/** Limit on placements when rules look at other instances: then one is placed after the other. */
const placedMax = 1_000;
/** Placements per step: about 5 ms. */
const placedPerStep = 128;
/** Rule evaluations per step: about 5 ms, on hosts that take many. */
const triesPerStep = 512;
/** Limit per host. */
const perHostMax = 10_000;
/** Hosts per step when they are only summed up: about 2 ms. */
const poolHostsPerStep = 8_192;
const examplesMax = 3;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Stranded = Mutable<SizeCapacity['stranded'][number]>;

class Tally {
  more = 0;
  readonly pools = new Map<string, number>();
  readonly free: Record<string, number> = {};
  readonly stranded = new Map<string, Stranded>();

  add(pool: string, count: number): void {
    this.more += count;
    this.pools.set(pool, (this.pools.get(pool) ?? 0) + count);
  }

  strand(reason: string, host: string, left: Amounts, message: () => string): void {
    if (Object.values(left).every((amount) => amount <= 0)) return;
    let known = this.stranded.get(reason);
    if (!known) this.stranded.set(reason, (known = { reason, hosts: 0, free: {}, examples: [] }));
    known.hosts += 1;
    known.free = sum(known.free, left);
    if (known.examples.length < examplesMax) known.examples.push({ host, message: message() });
  }

  answer(amounts: Amounts, atLeast: boolean): SizeCapacity {
    return {
      amounts: { ...amounts },
      more: this.more,
      ...(atLeast ? { atLeast } : {}),
      pools: [...this.pools].map(([pool, more]) => ({ pool, more })).sort((a, b) => (a.pool < b.pool ? -1 : 1)),
      free: this.free,
      stranded: [...this.stranded.values()].sort((a, b) => b.hosts - a.hosts || (a.reason < b.reason ? -1 : 1)),
    };
  }
}

export function* countMore(snapshot: Snapshot, request: Request): Steps<SizeCapacity> {
  const fleet = fleetOf(snapshot);
  const tally = new Tally();
  const byOthers = request.groups.length > 0;
  const placed = byOthers ? yield* placeMany(snapshot, request, tally) : [];
  for (let next = 0; next < fleet.length; ) {
    yield;
    next = fleet.tentatively(() => {
      if (byOthers) for (const { slot, held } of placed) hold(fleet, request, slot, held, 1);
      const verdicts = verdictsOf(request, fleet);
      let tries = 0;
      const verdictOn: Verdicts = (slot) => {
        tries += 1;
        return verdicts(slot);
      };
      const end = Math.min(fleet.length, next + hostsPerStep);
      let slot = next;
      for (; slot < end && tries < triesPerStep; slot++) {
        const host = fleet.hosts[slot];
        if (!host) continue;
        const before = freeOf(fleet, slot, request.assigned);
        Object.assign(tally.free, sum(tally.free, before));
        if (!byOthers) tally.add(host.spec.pool ?? '', fill(fleet, request, slot, verdictOn));
        const [refusal] = verdictOn(slot).refusals;
        const left = freeOf(fleet, slot, request.assigned);
        if (refusal) tally.strand(refusal.reason, host.metadata.name, left, refusal.message);
      }
      return slot;
    });
  }
  if (byOthers) {
    // Free amounts are those from before the trial.
    for (const { held } of placed) Object.assign(tally.free, sum(tally.free, totalOf(held)));
  }
  return tally.answer(request.assigned, placed.length >= placedMax);
}

type Verdicts = (slot: Slot) => HostVerdict;

/** In a trial: claims as many on the host as the rules allow. */
function fill(fleet: Fleet, request: Request, slot: Slot, verdictOn: Verdicts): number {
  const fits = (): boolean => verdictOn(slot).refusals.length === 0;
  let count = 0;
  while (count < perHostMax && fits()) {
    const tree = fleet.tree(slot);
    const assignment = assign(tree, request);
    if (!assignment.fits) break;
    const { held } = assignment;
    let times = request.ports.length > 0 ? 1 : copiesOf(tree, request);
    // The last must fit with all others in place; when a rule limits the number, fewer are tried.
    for (; times > 1; times >>= 1) {
      fleet.hold(slot, held, [], times - 1);
      const lastFits = fits();
      fleet.hold(slot, held, [], 1 - times);
      if (lastFits) break;
    }
    fleet.hold(slot, held, request.ports, times);
    count += times;
  }
  return count;
}

interface PlacedOne {
  readonly slot: Slot;
  readonly held: Allocation['amounts'];
}

/** Places one after the other like the scheduler, each with the earlier ones in place. */
function* placeMany(snapshot: Snapshot, request: Request, tally: Tally): Steps<PlacedOne[]> {
  const engine = engineOf(snapshot);
  const { fleet } = engine;
  const placed: PlacedOne[] = [];
  for (let full = false; !full && placed.length < placedMax; ) {
    yield;
    full = fleet.tentatively(() => {
      for (const { slot, held } of placed) hold(fleet, request, slot, held, 1);
      for (let i = 0; i < placedPerStep && placed.length < placedMax; i++) {
        const choice = engine.choose(request);
        if (!choice) return true;
        const { held } = placementAt(fleet, request, choice);
        hold(fleet, request, choice.slot, held, 1);
        placed.push({ slot: choice.slot, held });
      }
      return false;
    });
  }
  for (const { slot } of placed) tally.add(fleet.hosts[slot]?.spec.pool ?? '', 1);
  return placed;
}

/** In a trial: places `times` instances there, as room and as neighbours. */
export function hold(fleet: Fleet, request: Request, slot: Slot, held: Allocation['amounts'], times: number): void {
  fleet.hold(slot, held, request.ports, times);
  for (let i = 0; i < times; i++) fleet.groups.try(slot, request.belonging, 1);
}

/** The free amounts of the requested classes on the host. */
function freeOf(fleet: Fleet, slot: Slot, asked: Amounts): Amounts {
  const free: Record<string, number> = {};
  for (const resourceClass of Object.keys(asked)) {
    const column = fleet.column(resourceClass);
    if (column) free[resourceClass] = Math.max(0, column.capacity(slot) - column.used(slot));
  }
  return free;
}

function totalOf(held: Allocation['amounts']): Amounts {
  return Object.values(held).reduce<Amounts>((total, amounts) => sum(total, amounts), {});
}

function sum(a: Amounts, b: Amounts): Amounts {
  const total: Record<string, number> = { ...a };
  for (const [resourceClass, amount] of Object.entries(b)) total[resourceClass] = (total[resourceClass] ?? 0) + amount;
  return total;
}

/** Capacity and use of each pool. */
export function* poolUse(snapshot: Snapshot): Steps<Capacity['pools']> {
  const fleet = fleetOf(snapshot);
  const columns = [...fleet.columns()];
  const pools = new Map<string, Mutable<Capacity['pools'][number]>>();
  for (let slot = 0; slot < fleet.length; slot++) {
    if (slot % poolHostsPerStep === 0) yield;
    const host = fleet.hosts[slot];
    if (!host) continue;
    const pool = host.spec.pool ?? '';
    let use = pools.get(pool);
    if (!use) pools.set(pool, (use = { pool, hosts: 0, open: 0, classes: {} }));
    use.hosts += 1;
    if (isReady(host.status) && !host.spec.paused) use.open += 1;
    for (const column of columns) {
      if (column.capacity(slot) === 0) continue;
      const known = (use.classes[column.resourceClass] ??= { capacity: 0, used: 0 });
      known.capacity += column.capacity(slot);
      known.used += column.used(slot);
    }
  }
  return [...pools.values()].sort((a, b) => (a.pool < b.pool ? -1 : 1));
}
