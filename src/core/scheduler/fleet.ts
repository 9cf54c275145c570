// Fleet: the hosts as columns of numbers, updated from the records, so that a rule costs a few memory loads instead of
// a walk through objects. It knows what is free where, and never decides. Tentative changes are undone when the trial
// ends.

import { equalJson } from '../../base/equal-json.ts';
import { assert } from '../../base/assert.ts';
import type { Host } from '../../api/resources/host.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { capacityOf } from '../ledger/ledger.ts';
import type { ProviderRoom, Tree } from '../ledger/tree.ts';
import { restoreOf } from '../state/cluster-state.ts';
import { nextIncarnation } from '../state/incarnation.ts';
import type { Allocation, Provider } from '../state/records.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../state/snapshot.ts';
import { ChangeLog } from './engine/change-log.ts';
import { Column } from './engine/column.ts';
import type { Slot } from './engine/slot.ts';
import { Groups } from './neighbours/groups.ts';
import { Nominations } from './nominations.ts';
import { Mix } from './packing/mix.ts';
import { UnknownGuests } from './unknown-guests.ts';
import { Topologies } from './neighbours/topology.ts';
import { usualDriver } from './wanted-driver.ts';

interface ProviderUse {
  readonly provider: Provider;
  used: ReadonlyMap<string, number>;
  pool: string | undefined;
}

const capacityMin = 16;

export const fleetOf = defineView((snapshot) => new Fleet(snapshot));

export class Fleet implements View {
  /** By slot; undefined where a host has been removed. */
  readonly hosts: (Host | undefined)[] = [];
  /** By slot; breaks ties. */
  readonly names: string[] = [];
  /**
   * By slot: its providers, as of their last change in more than the generation. Empty until the agent has reported its
   * inventory.
   */
  readonly trees: ProviderUse[][] = [];
  /** By slot: number of instances that hold an allocation there. */
  readonly guests: number[] = [];
  /** By slot: the limit on that number. */
  readonly guestsMax: number[] = [];
  /** By slot: the first working driver; empty when none works. */
  readonly drivers: string[] = [];
  /** By slot: host ports in use, as `tcp/8080`; undefined when there are none. */
  readonly ports: (ReadonlySet<string> | undefined)[] = [];
  /** By slot: some provider has a step size or minimum unit, so the columns are not exact. */
  readonly stepped: boolean[] = [];
  /**
   * Number of hosts with a soft taint, and of hosts with a limit on instances; at 0 the rules about these do not apply.
   */
  softTaints = 0;
  quotas = 0;
  /** Every change of a host and of its instances. */
  readonly log = new ChangeLog();
  /** Changes of the host's record. */
  readonly recordLog = new ChangeLog();
  readonly groups: Groups;
  readonly nominations: Nominations;
  readonly unknownGuests = new UnknownGuests();
  readonly topologies: Topologies;
  /** Number of slots allocated; columns and verdicts have this length. */
  capacity = capacityMin;
  /**
   * A number that changes whenever candidate lists become invalid: a column was added, all columns grew, a slot has
   * another name, or the mix of requests changed.
   */
  layout = 0;
  /** Number of hosts. */
  count = 0;

  readonly #snapshot: Snapshot;
  readonly #slotByName = new Map<string, Slot>();
  readonly #free: Slot[] = [];
  readonly #columns = new Map<string, Column>();
  readonly #columnsBySlot: Column[][] = [];
  /** Slots that the trial changed. */
  #trial: Set<Slot> | null = null;
  /** Hosts whose record the trial changed, with the real record. */
  readonly #imagined = new Map<Slot, Host | undefined>();
  /** Slots of hosts that exist only in the trial. */
  readonly #supposed: Slot[] = [];
  #mix: Mix | null = null;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    this.topologies = new Topologies(this.hosts);
    this.groups = new Groups(snapshot, this);
    this.nominations = new Nominations(snapshot);
    for (const { value } of snapshot.list('host')) this.#setHost(value);
    this.groups.load();
  }

  /** One more than the highest slot ever used. */
  get length(): number {
    return this.hosts.length;
  }

  slotOf(host: string): Slot | undefined {
    return this.#slotByName.get(host);
  }

  /** The column of a class, or undefined when no host has ever had it. */
  column(resourceClass: string): Column | undefined {
    return this.#columns.get(resourceClass);
  }

  instance(id: string): Instance | undefined {
    return this.#snapshot.instanceById(id)?.value;
  }

  /** The incarnation that the next placement of the instance starts. */
  nextIncarnationOf(instance: Instance): number {
    return nextIncarnation(this.#snapshot, instance);
  }

  /** Instances created up to this time may come from a backup; set after a restore. */
  get restoredUpToMs(): number | undefined {
    return restoreOf(this.#snapshot)?.newestInstanceMs;
  }

  columns(): Iterable<Column> {
    return this.#columns.values();
  }

  /**
   * What instances ask for, counted from the first access on, so that a fleet whose rules do not read it pays nothing.
   */
  get mix(): Mix {
    return (this.#mix ??= new Mix(this.#snapshot));
  }

  apply({ key, kind, before, after }: RecordChange): void {
    switch (kind) {
      case 'host':
        if (after?.kind === 'host') this.#setHost(after);
        else if (before?.kind === 'host') this.#removeHost(before.metadata.name);
        return;
      case 'provider':
        return this.#applyProvider(
          before?.kind === 'provider' ? before : null,
          after?.kind === 'provider' ? after : null,
        );
      case 'allocation': {
        const allocation = after?.kind === 'allocation' ? after : before?.kind === 'allocation' ? before : undefined;
        const slot = allocation && this.#slotByName.get(allocation.host);
        if (slot === undefined || !allocation) return;
        this.#measureUse(slot);
        if (hasPorts(before) || hasPorts(after)) this.#measurePorts(slot);
        return;
      }
      case 'instance': {
        const was = before?.kind === 'instance' ? before : null;
        const is = after?.kind === 'instance' ? after : null;
        this.groups.apply(key, was, is);
        this.nominations.apply(key, was, is);
        if (this.#mix?.apply(was, is)) this.layout += 1;
        return;
      }
      default:
    }
  }

  // Trials: hypothetical changes.

  /** Number of trials begun. */
  trials = 0;

  get trying(): boolean {
    return this.#trial !== null;
  }

  /** Runs `body`, which may call `hold` and `setAside`, then restores the previous state. */
  tentatively<T>(body: () => T): T {
    assert(!this.#trial, 'a trial within a trial');
    const touched = new Set<Slot>();
    this.#trial = touched;
    this.trials += 1;
    try {
      return body();
    } finally {
      this.#trial = null;
      for (const [slot, host] of this.#imagined) this.#see(slot, host);
      this.#imagined.clear();
      for (const slot of touched) this.#measureAll(slot);
      this.groups.endTrial();
      for (const slot of this.#supposed.splice(0)) this.#forget(slot);
    }
  }

  /** In a trial: claims `held` on the host `times` over. */
  hold(slot: Slot, held: Allocation['amounts'], ports: readonly string[] = [], times = 1): void {
    this.#tryUse(slot, held, times);
    if (ports.length > 0) this.ports[slot] = new Set([...(this.ports[slot] ?? []), ...ports]);
  }

  /** In a trial: releases `held` on the host. */
  giveBack(slot: Slot, held: Allocation['amounts'], ports: readonly string[] = []): void {
    this.#tryUse(slot, held, -1);
    if (ports.length === 0) return;
    const left = new Set(this.ports[slot]);
    for (const port of ports) left.delete(port);
    this.ports[slot] = left;
  }

  #tryUse(slot: Slot, held: Allocation['amounts'], times: number): void {
    this.#try(slot);
    for (const use of this.trees[slot] ?? []) {
      const amounts = held[use.provider.id];
      if (amounts) use.used = plus(use.used, amounts, times);
    }
    this.guests[slot] = (this.guests[slot] ?? 0) + times;
    this.#sumColumns(slot);
  }

  /** In a trial: removes the host. */
  setAside(slot: Slot): void {
    this.#try(slot);
    if (!this.#imagined.has(slot)) this.#imagined.set(slot, this.hosts[slot]);
    this.trees[slot] = [];
    this.#sumColumns(slot);
    this.#see(slot, undefined);
  }

  /** In a trial: replaces the host's record. */
  imagine(slot: Slot, host: Host): void {
    assert(this.#trial, 'hosts are imagined only within a trial');
    if (!this.#imagined.has(slot)) this.#imagined.set(slot, this.hosts[slot]);
    this.#see(slot, host);
  }

  /** In a trial: adds an empty host like this one. Returns its slot. */
  imagineMore(like: Slot): Slot {
    const host = this.hosts[like];
    assert(this.#trial && host, 'hosts are imagined only within a trial, like one that is there');
    const slot = this.#free.pop() ?? this.hosts.length;
    if (slot >= this.capacity) this.#grow();
    this.#supposed.push(slot);
    const name = `~${slot}`; // not the name of a host, and last in ties
    if (this.names[slot] !== undefined && this.names[slot] !== name) this.layout += 1;
    this.names[slot] = name;
    this.trees[slot] = (this.trees[like] ?? []).map(({ provider, pool }) => ({ provider, used: new Map(), pool }));
    this.stepped[slot] = this.stepped[like] ?? false;
    this.guests[slot] = 0;
    this.ports[slot] = undefined;
    this.#sumColumns(slot);
    this.#see(slot, host);
    return slot;
  }

  #forget(slot: Slot): void {
    this.#free.push(slot);
    this.trees[slot] = [];
    this.guests[slot] = 0;
    this.ports[slot] = undefined;
    this.#sumColumns(slot);
    this.#see(slot, undefined);
  }

  #see(slot: Slot, host: Host | undefined): void {
    this.#write(slot, host);
    if (this.topologies.update(slot)) this.groups.hostMoved(slot);
    this.#recordChanged(slot);
  }

  #write(slot: Slot, host: Host | undefined): void {
    this.#countRare(this.hosts[slot], host);
    this.unknownGuests.apply(slot, this.hosts[slot], host);
    this.hosts[slot] = host;
    for (const use of this.trees[slot] ?? []) use.pool = host?.spec.pool;
    this.guestsMax[slot] = host?.spec.instancesMax ?? Number.POSITIVE_INFINITY;
    this.drivers[slot] = usualDriver(host?.status.drivers ?? []) ?? '';
  }

  #try(slot: Slot): void {
    assert(this.#trial, 'holds are laid over the fleet only within a trial');
    this.#trial.add(slot);
  }

  // Updates.

  #setHost(host: Host): void {
    const { name } = host.metadata;
    const known = this.#slotByName.get(name);
    if (known !== undefined) {
      const before = this.hosts[known];
      this.#write(known, host);
      if (before && sameForRules(before, host)) return;
      if (this.topologies.update(known)) this.groups.hostMoved(known);
      this.#recordChanged(known);
      return;
    }
    const slot = this.#free.pop() ?? this.hosts.length;
    if (slot >= this.capacity) this.#grow();
    this.#slotByName.set(name, slot);
    this.#write(slot, host);
    if (this.names[slot] !== undefined && this.names[slot] !== name) this.layout += 1; // ties were broken by the old name
    this.names[slot] = name;
    this.count += 1;
    this.#measureAll(slot);
    this.topologies.update(slot);
    this.groups.hostCame(name, slot);
    this.#recordChanged(slot);
  }

  #removeHost(name: string): void {
    const slot = this.#slotByName.get(name);
    if (slot === undefined) return;
    this.groups.hostGone(name, slot);
    this.#slotByName.delete(name);
    this.#free.push(slot);
    this.#write(slot, undefined);
    this.trees[slot] = [];
    this.guests[slot] = 0;
    this.ports[slot] = undefined;
    this.count -= 1;
    this.#sumColumns(slot);
    this.topologies.update(slot);
    this.#recordChanged(slot);
  }

  #applyProvider(before: Provider | null, after: Provider | null): void {
    const host = after?.host ?? before?.host;
    const slot = host === undefined ? undefined : this.#slotByName.get(host);
    if (slot === undefined) return;
    this.#measureAll(slot);
    this.#recordChanged(slot); // rules read traits from providers
  }

  #countRare(before: Host | undefined, after: Host | undefined): void {
    const { softTaints, quotas } = this;
    this.softTaints += Number(hasSoftTaint(after)) - Number(hasSoftTaint(before));
    this.quotas += Number(hasQuota(after)) - Number(hasQuota(before));
    if (softTaints > 0 !== this.softTaints > 0 || quotas > 0 !== this.quotas > 0) this.layout += 1;
  }

  #recordChanged(slot: Slot): void {
    this.recordLog.push(slot);
    this.log.push(slot);
  }

  #grow(): void {
    this.capacity *= 2;
    for (const column of this.#columns.values()) column.grow(this.capacity);
    this.layout += 1;
  }

  #measureAll(slot: Slot): void {
    const name = this.names[slot] ?? '';
    const providers = this.#snapshot.providersOfHost(name).map(({ value }) => value);
    providers.sort((a, b) => Number(a.parent !== null) - Number(b.parent !== null) || (a.id < b.id ? -1 : 1));
    const pool = this.hosts[slot]?.spec.pool;
    this.trees[slot] = providers.map((provider) => ({ provider, used: this.#snapshot.usedBy(provider.id), pool }));
    this.stepped[slot] = providers.some((provider) => Object.values(provider.inventories).some(isStepped));
    this.guests[slot] = this.#snapshot.heldOnHost(name);
    this.#sumColumns(slot);
    this.#measurePorts(slot);
  }

  /** After a claim or a release. */
  #measureUse(slot: Slot): void {
    for (const use of this.trees[slot] ?? []) {
      // The use of a provider is one object from its first use on, updated in place.
      if (use.used.size === 0) use.used = this.#snapshot.usedBy(use.provider.id);
    }
    this.guests[slot] = this.#snapshot.heldOnHost(this.names[slot] ?? '');
    this.#sumColumns(slot);
  }

  #measurePorts(slot: Slot): void {
    let ports: Set<string> | undefined;
    for (const port of this.#snapshot.portsHeldOnHost(this.names[slot] ?? '')) (ports ??= new Set()).add(port);
    this.ports[slot] = ports;
  }

  #sumColumns(slot: Slot): void {
    const columns = (this.#columnsBySlot[slot] ??= []);
    for (const column of columns) column.clear(slot);
    for (const { provider, used } of this.trees[slot] ?? []) {
      for (const resourceClass in provider.inventories) {
        const inventory = provider.inventories[resourceClass];
        if (!inventory) continue;
        const column = this.#columnFor(resourceClass);
        if (!columns.includes(column)) columns.push(column);
        const capacity = capacityOf(inventory);
        const held = used.get(resourceClass) ?? 0;
        column.add(slot, { capacity, used: held, most: Math.min(capacity - held, inventory.maxUnit) });
      }
    }
    this.log.push(slot);
  }

  #columnFor(resourceClass: string): Column {
    let column = this.#columns.get(resourceClass);
    if (!column) {
      column = new Column(resourceClass, this.capacity);
      this.#columns.set(resourceClass, column);
      this.layout += 1; // candidates may have been found without it
    }
    return column;
  }

  /** The host's providers and their free amounts, in the form the ledger reads. */
  tree(slot: Slot): Tree {
    return this.trees[slot] ?? noTree;
  }
}

const noTree: readonly ProviderRoom[] = [];

function isStepped({ minUnit, stepSize }: { minUnit: number; stepSize: number }): boolean {
  return minUnit > 1 || stepSize > 1;
}

function hasPorts(record: RecordChange['before']): boolean {
  return record?.kind === 'allocation' && record.ports !== undefined && record.ports.length > 0;
}

function hasSoftTaint(host: Host | undefined): boolean {
  return host?.spec.taints?.some(({ effect }) => effect === 'PreferNoSchedule') ?? false;
}

function hasQuota(host: Host | undefined): boolean {
  return host?.spec.instancesMax !== undefined;
}

/**
 * Whether rules give the same verdicts on both. Heartbeats mostly change sessions and unknown guests, which no host
 * rule reads.
 */
function sameForRules(a: Host, b: Host): boolean {
  return (
    equalJson(a.spec, b.spec) &&
    equalJson(a.metadata.labels, b.metadata.labels) &&
    equalJson(a.status.conditions, b.status.conditions) &&
    equalJson(a.status.drivers, b.status.drivers) &&
    equalJson(a.status.images, b.status.images) &&
    a.status.controlPlane === b.status.controlPlane &&
    a.status.architecture === b.status.architecture
  );
}

function plus(used: ReadonlyMap<string, number>, amounts: Amounts, times: number): ReadonlyMap<string, number> {
  const sum = new Map(used);
  for (const resourceClass in amounts)
    sum.set(resourceClass, (sum.get(resourceClass) ?? 0) + times * (amounts[resourceClass] ?? 0));
  return sum;
}
