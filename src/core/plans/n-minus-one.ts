// N-1: do the instances of each host fit on the other hosts? Greedy, the largest first: "shown" is certain as far as rules and room go,
// "not shown" does not mean that it is impossible. Also within a trial, when its steps are taken at once.

import type { Survival } from '../../api/plans/host-plan.ts';
import { holdsOnlyDisk } from '../ledger/ledger.ts';
import { verdictsOf } from '../scheduler/engine/full-scan.ts';
import type { Engine } from '../scheduler/engine/engine.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import { prepareGroupRules } from '../scheduler/engine/verdicts.ts';
import type { Fleet } from '../scheduler/fleet.ts';
import type { GroupTerm } from '../scheduler/neighbours/group-terms.ts';
import { groupPlugins } from '../scheduler/registry.ts';
import { type Request, requestOf } from '../scheduler/request.ts';
import { engineOf } from '../scheduler/schedule.ts';
import type { Steps } from '../scheduler/steps.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** Instances per step: about 5 ms. */
const perStep = 1_000;
const namesMax = 10;
/** More shapes than the engine ranks at once would cost a scan for each instance. */
const shapesMax = 400;
/** Hosts that are tried for an instance whose rules look at other instances. */
const groupedTriesMax = 32;

/** What would need room elsewhere if a host were lost, for several looks at one snapshot. */
export class RequestsByHost {
  readonly #snapshot: Snapshot;
  readonly #byHost = new Map<string, readonly Request[]>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  on(host: string): readonly Request[] {
    let known = this.#byHost.get(host);
    if (!known) this.#byHost.set(host, (known = [...requestsOn(this.#snapshot, host)]));
    return known;
  }
}

/** Where things are that the snapshot shows elsewhere: what a plan moves. */
export interface Moved {
  /** By host: instances that a plan takes there. */
  readonly to: ReadonlyMap<string, readonly Request[]>;
  /** The host that a plan empties. */
  readonly from: string;
}

/** `known`: shared with another look at the same snapshot; nothing else happens in between, so that it is one step. */
export function* survivalOf(snapshot: Snapshot, moved?: Moved, known?: RequestsByHost): Steps<Survival> {
  const engine = engineOf(snapshot);
  const places = new Places(engine);
  const notShown: string[] = [];
  let hosts = 0;
  let looked = 0;
  for (let slot = 0; slot < engine.fleet.length; slot++) {
    const name = engine.fleet.names[slot] ?? '';
    if (!engine.fleet.hosts[slot] || name === moved?.from) continue;
    const requests = [...(known?.on(name) ?? requestsOn(snapshot, name)), ...(moved?.to.get(name) ?? [])];
    if (requests.length === 0) continue;
    hosts += 1;
    if (!places.fitWithout(slot, requests)) notShown.push(name);
    looked += requests.length;
    if (known !== undefined || looked < perStep) continue;
    looked = 0;
    yield;
    places.forget(); // others may have been placed meanwhile
  }
  notShown.sort();
  return {
    survives: notShown.length === 0,
    hosts,
    notShown: notShown.slice(0, namesMax),
    notShownCount: notShown.length,
  };
}

/** Of the instances that would need room elsewhere. */
function* requestsOn(snapshot: Snapshot, host: string): Iterable<Request> {
  for (const { value } of snapshot.allocationsOnHost(host)) {
    const { consumer } = value;
    if (consumer.kind !== undefined || holdsOnlyDisk(value)) continue;
    const instance = snapshot.instanceById(consumer.id)?.value;
    if (instance?.status.incarnation === consumer.incarnation) yield requestOf(snapshot, instance);
  }
}

interface Taken {
  readonly amounts: Record<string, number>;
  guests: number;
  /** By one whose room or neighbours are not plain sums: it shares its target with no other. */
  alone: boolean;
}

class Places {
  readonly #engine: Engine;
  readonly #fleet: Fleet;
  /** By shape: the hosts that fit it. */
  readonly #fits = new Map<string, readonly Slot[]>();

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#fleet = engine.fleet;
  }

  forget(): void {
    this.#fits.clear();
  }

  fitWithout(lost: Slot, requests: readonly Request[]): boolean {
    const taken = new Map<Slot, Taken>();
    const largestFirst = requests.length > 1 ? requests.toSorted((a, b) => sizeOf(b) - sizeOf(a)) : requests;
    return largestFirst.every((request) => this.#take(lost, request, taken));
  }

  #take(lost: Slot, request: Request, taken: Map<Slot, Taken>): boolean {
    const fits = this.#fitting(request);
    if (!fits) return false;
    const plain = request.portions.length + request.ports.length === 0 && !request.groups.some(mayRefuse);
    const verdictOn = prepareGroupRules(groupPlugins, request, this.#fleet)
      ? verdictsOf(request, this.#fleet)
      : undefined;
    let tries = 0;
    for (const slot of fits) {
      if (slot === lost || !this.#hasRoom(slot, request, plain, taken.get(slot))) continue;
      if (verdictOn) {
        if (++tries > groupedTriesMax) return false;
        if (verdictOn(slot).refusals.length > 0) continue;
      }
      let there = taken.get(slot);
      if (!there) taken.set(slot, (there = { amounts: {}, guests: 0, alone: false }));
      for (const resourceClass in request.amounts)
        there.amounts[resourceClass] = (there.amounts[resourceClass] ?? 0) + (request.amounts[resourceClass] ?? 0);
      there.guests += 1;
      there.alone ||= !plain || this.#fleet.stepped[slot] === true;
      return true;
    }
    return false;
  }

  #fitting(request: Request): readonly Slot[] | undefined {
    const known = this.#fits.get(request.shapeKey);
    if (known) return known;
    if (this.#fits.size >= shapesMax) return undefined;
    const found: Slot[] = [];
    if (this.#engine.fitCount(request) > 0)
      for (let slot = 0; slot < this.#fleet.length; slot++)
        if (this.#fleet.hosts[slot] && this.#engine.fitsAt(request, slot)) found.push(slot);
    this.#fits.set(request.shapeKey, found);
    return found;
  }

  /** Beside what is taken there; that it fits alone is known. */
  #hasRoom(slot: Slot, request: Request, plain: boolean, there: Taken | undefined): boolean {
    if (!there) return true;
    if (!plain || there.alone) return false;
    const fleet = this.#fleet;
    if ((fleet.guests[slot] ?? 0) + there.guests >= (fleet.guestsMax[slot] ?? 0)) return false;
    for (const resourceClass in request.amounts) {
      const left = freeAt(fleet, slot, resourceClass) - (there.amounts[resourceClass] ?? 0);
      if (left < (request.amounts[resourceClass] ?? 0)) return false;
    }
    return true;
  }
}

/** For several claims together, of which each fits alone. Where several providers have the class, they may share none of it. */
function freeAt(fleet: Fleet, slot: Slot, resourceClass: string): number {
  const column = fleet.column(resourceClass);
  if (!column) return 0;
  let providers = 0;
  for (const { provider } of fleet.trees[slot] ?? []) if (provider.inventories[resourceClass]) providers += 1;
  return providers === 1 ? column.capacity(slot) - column.used(slot) : column.most(slot);
}

/** Others are preferences. */
function mayRefuse(term: GroupTerm): boolean {
  return 'required' in term ? term.required : true;
}

/** Memory and CPUs in one number: only the order counts. */
function sizeOf({ amounts }: Request): number {
  return (amounts['MEMORY_MB'] ?? 0) + 4_096 * (amounts['VCPU'] ?? 0);
}
