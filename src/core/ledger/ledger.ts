// Ledger: which consumer holds how much of what. The only source for what is free; claims and releases are changes for
// a Plan. Terms and arithmetic are those of OpenStack Placement (docs.openstack.org/placement, "allocation
// candidates").

import { assert } from '../../base/assert.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import type { Volume } from '../../api/resources/volume.ts';
import { keys } from '../state/keys.ts';
import type { Change } from '../state/plan.ts';
import type { Allocation, Inventory, Provider } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { heldGiB, lifeOf } from '../state/volumes.ts';

/** The capacity of an inventory: floor((total − reserved) × ratio). */
export function capacityOf(inventory: Inventory): number {
  return Math.max(0, Math.floor((inventory.total - inventory.reserved) * inventory.allocationRatio));
}

/**
 * `TooFew`: not enough devices (or cells) with enough free; `asked` and `free` count devices, `each` is the amount per
 * device. `NoProvider`: none has the traits and aggregates of the group `group`, which asks for no amounts. `Apart`: the
 * providers of the groups `group` are not in one subtree.
 */
export type FitRefusal =
  | 'Insufficient'
  | 'BelowMinUnit'
  | 'AboveMaxUnit'
  | 'NotAStep'
  | 'NoInventory'
  | 'TooFew'
  | 'NoProvider'
  | 'Apart';

export type Fit =
  | { readonly fits: true }
  | {
      readonly fits: false;
      readonly refusal: FitRefusal;
      readonly resourceClass: string;
      readonly asked: number;
      readonly free: number;
      readonly each?: number;
      /** The minimum unit, the maximum unit or the step size. */
      readonly limit?: number;
      readonly group?: string;
    };

export type Shortfall = Exclude<Fit, { readonly fits: true }>;

/** Whether `provider` can give `amounts` in addition to `used`; else the first class that it cannot give. */
export function fit(provider: Provider, used: ReadonlyMap<string, number>, amounts: Amounts): Fit {
  for (const resourceClass in amounts) {
    const asked = amounts[resourceClass] ?? 0;
    const verdict = fitClass(provider.inventories[resourceClass], used.get(resourceClass) ?? 0, resourceClass, asked);
    if (!verdict.fits) return verdict;
  }
  return { fits: true };
}

function fitClass(inventory: Inventory | undefined, used: number, resourceClass: string, asked: number): Fit {
  if (asked === 0) return { fits: true };
  if (!inventory) return { fits: false, refusal: 'NoInventory', resourceClass, asked, free: 0 };
  const free = Math.max(0, capacityOf(inventory) - used);
  const { minUnit, maxUnit, stepSize } = inventory;
  const short = { fits: false, resourceClass, asked, free } as const;
  if (asked > free) return { ...short, refusal: 'Insufficient' };
  // A part of a CPU touches a whole one.
  const touched = Math.ceil(asked);
  if (touched < minUnit) return { ...short, refusal: 'BelowMinUnit', limit: minUnit };
  if (touched > maxUnit) return { ...short, refusal: 'AboveMaxUnit', limit: maxUnit };
  if (touched % stepSize !== 0) return { ...short, refusal: 'NotAStep', limit: stepSize };
  return { fits: true };
}

/**
 * Claims room of a host's providers for a consumer. It rewrites those providers, and always the root, so that of two
 * claims on one host decided on the same view only one commits. This condition keeps invariant 1, and every rule about
 * the other instances of the host, under any number of control planes.
 */
export function claim(
  snapshot: Snapshot,
  { consumer, host, held, driver, ports }: Omit<Allocation, 'kind' | 'amounts'> & { readonly held: Held },
): Change[] {
  const changes = rewrite(snapshot, host, held);
  changes.push({
    key: keys.allocation(consumer.id, consumer.incarnation),
    ifRevision: 0,
    value:
      ports === undefined || ports.length === 0
        ? { kind: 'allocation', consumer, host, amounts: held, driver }
        : { kind: 'allocation', consumer, host, amounts: held, driver, ports },
  });
  return changes;
}

/** Claims room of one provider for volumes, each by itself. */
export function claimVolumes(
  snapshot: Snapshot,
  volumes: readonly Volume[],
  at: { readonly host: string; readonly providerId: string },
): Change[] {
  return [...rewrite(snapshot, at.host, { [at.providerId]: {} }), ...volumes.map((volume) => allocationOf(volume, at))];
}

/** The same for volumes placed with an instance: `held` is the sum of all. The remainder belongs to the instance. */
export function claimWithVolumes(
  snapshot: Snapshot,
  claimed: Omit<Allocation, 'kind' | 'amounts'> & { readonly held: Held },
  volumes: readonly Volume[],
): Change[] {
  const { own, at } = apart(claimed, volumes);
  return [...claim(snapshot, { ...claimed, held: own }), ...volumes.map((volume) => allocationOf(volume, at))];
}

/** Of an allocation that holds the room of an instance and of these volumes together: each gets its own. */
export function splitVolumes(allocation: Entry<Allocation>, volumes: readonly Volume[]): Change[] {
  if (volumes.length === 0) return [];
  const { host, amounts } = allocation.value;
  const { own, at } = apart({ host, held: amounts }, volumes);
  return [
    { key: allocation.key, ifRevision: allocation.revision, value: { ...allocation.value, amounts: own } },
    ...volumes.map((volume) => allocationOf(volume, at)),
  ];
}

function apart(
  { host, held }: { readonly host: string; readonly held: Held },
  volumes: readonly Volume[],
): { readonly own: Held; readonly at: { readonly host: string; readonly providerId: string } } {
  const gib = volumes.reduce((sum, { spec }) => sum + heldGiB(spec), 0);
  const [providerId] = Object.keys(held).filter((id) => (held[id]?.['DISK_GB'] ?? 0) >= gib);
  assert(providerId !== undefined, 'volumes are placed where no provider holds their room');
  const { DISK_GB: disk = 0, ...rest } = held[providerId] ?? {};
  return {
    own: { ...held, [providerId]: disk > gib ? { ...rest, DISK_GB: disk - gib } : rest },
    at: { host, providerId },
  };
}

function allocationOf(volume: Volume, at: { readonly host: string; readonly providerId: string }): Change {
  const { id, project, name } = volume.metadata;
  const incarnation = lifeOf(volume.status);
  return {
    key: keys.allocation(id, incarnation),
    ifRevision: 0,
    value: {
      kind: 'allocation',
      consumer: { kind: 'volume', id, incarnation, project, name },
      host: at.host,
      amounts: { [at.providerId]: { DISK_GB: heldGiB(volume.spec) } },
      driver: '',
    },
  };
}

/** By provider id, then resource class. */
export type Held = Allocation['amounts'];

function rewrite(snapshot: Snapshot, host: string, held: Held): Change[] {
  const changes: Change[] = [];
  let root = false;
  for (const id in held) {
    const provider = snapshot.get('provider', keys.provider(id));
    if (!provider) continue;
    changes.push(marked(provider));
    root ||= provider.value.parent === null;
  }
  // Most claims are on the root alone; other providers are searched only for a claim that takes nothing from the root.
  if (root) return changes;
  for (const provider of snapshot.providersOfHost(host))
    if (provider.value.parent === null) changes.push(marked(provider));
  return changes;
}

function marked({ key, revision, value }: Entry<Provider>): Change {
  return { key, ifRevision: revision, value: { ...value, generation: value.generation + 1 } };
}

/** Releases an allocation completely. Committed at most once: the allocation's own revision is the condition. */
export function release(allocation: Entry<Allocation>): Change[] {
  return [{ key: allocation.key, ifRevision: allocation.revision, value: null }];
}

/** Releases everything that a consumer holds anywhere. */
export function releaseAllOf(snapshot: Snapshot, consumerId: string): Change[] {
  return snapshot.allocationsOfConsumer(consumerId).flatMap(release);
}

/** Whether only the disk is held: the guest does not run, and must not run until the rest is claimed again. */
export function holdsOnlyDisk({ amounts }: Allocation): boolean {
  return Object.values(amounts).every((held) =>
    Object.keys(held).every((resourceClass) => resourceClass === 'DISK_GB'),
  );
}

/** Extends a reduced allocation to `held`. Rewrites the providers like every claim. */
export function claimAgain(snapshot: Snapshot, allocation: Entry<Allocation>, held: Held): Change[] {
  return [
    ...rewrite(snapshot, allocation.value.host, held),
    { key: allocation.key, ifRevision: allocation.revision, value: { ...allocation.value, amounts: held } },
  ];
}

/** Releases everything but the disk, for a stopped guest whose files are kept. No change when that is done already. */
export function releaseAllButDisk(allocation: Entry<Allocation>): Change[] {
  const amounts: Record<string, Amounts> = {};
  let smaller = false;
  for (const [providerId, held] of Object.entries(allocation.value.amounts)) {
    const disk = held['DISK_GB'];
    amounts[providerId] = disk === undefined ? {} : { DISK_GB: disk };
    smaller ||= Object.keys(held).some((resourceClass) => resourceClass !== 'DISK_GB');
  }
  return smaller
    ? [{ key: allocation.key, ifRevision: allocation.revision, value: { ...allocation.value, amounts } }]
    : [];
}

export interface OverUse {
  readonly providerId: string;
  readonly resourceClass: string;
  readonly used: number;
  readonly capacity: number;
}

/** Every resource class held beyond its capacity. Shrinking an inventory below its use causes this; claims never do. */
export function overUse(snapshot: Snapshot): OverUse[] {
  const found: OverUse[] = [];
  for (const { value: provider } of snapshot.list('provider')) {
    for (const [resourceClass, used] of snapshot.usedBy(provider.id)) {
      const inventory = provider.inventories[resourceClass];
      const capacity = inventory ? capacityOf(inventory) : 0;
      if (used > capacity) found.push({ providerId: provider.id, resourceClass, used, capacity });
    }
  }
  return found;
}
