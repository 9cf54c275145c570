// Inventory of a host: what its agent measured or its operator states, minus what is reserved; for the host itself and
// for each device and cell.

import type { ChildProvider } from '../../api/resources/host-rules.ts';
import type { HostSpec, HostStatus } from '../../api/resources/host.ts';
import { reservedOf } from '../../api/resources/host-reserve.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import type { Inventory } from '../state/records.ts';

type Inventories = Readonly<Record<string, Inventory>>;

/** The inventories of one provider of a host. */
export interface ProviderInventories {
  /** Empty: the host itself, its root provider. */
  readonly name: string;
  readonly inventories: Inventories;
  readonly traits: readonly string[];
}

/** One inventory per class of `capacity`. The operator's `reserved`, ratios and units override the agent's. */
export function inventoriesOf(spec: HostSpec, capacity: Amounts, measuredReserve: Amounts): Record<string, Inventory> {
  const inventories: Record<string, Inventory> = {};
  for (const [resourceClass, measured] of Object.entries(withStated(spec, capacity))) {
    const reserved = reservedOf(spec, { resourceClass, total: measured, measuredReserve });
    inventories[resourceClass] = inventoryOf(spec, { resourceClass, total: measured, reserved });
  }
  return inventories;
}

/**
 * The root first, then devices and cells; the operator's override the agent's of the same name. Capacity of devices and
 * cells is part of the host's capacity where the host has the class; the root has the rest, and none of a class that is
 * entirely in them. A reserved amount of such a class is divided in proportion.
 */
export function providersOf(
  spec: HostSpec,
  status: Pick<HostStatus, 'capacity' | 'reserved' | 'providers'>,
): ProviderInventories[] {
  const capacity = withStated(spec, status.capacity ?? {});
  const measuredReserve = status.reserved ?? {};
  const children = childrenOf(spec, status.providers ?? []);
  const inChildren = sumOf(children);
  const root: Record<string, Inventory> = {};
  const toReserve = new Map<string, number>();
  for (const [resourceClass, all] of Object.entries(capacity)) {
    const reserved = reservedOf(spec, { resourceClass, total: all, measuredReserve });
    const total = Math.max(0, all - (inChildren.get(resourceClass) ?? 0));
    if (total > 0 || !inChildren.has(resourceClass))
      root[resourceClass] = inventoryOf(spec, { resourceClass, total, reserved: Math.min(total, reserved) });
    if (reserved > total) toReserve.set(resourceClass, reserved - total);
  }
  return [
    { name: '', inventories: root, traits: [] },
    ...children.map(({ name, amounts, traits }) => ({
      name,
      traits,
      inventories: Object.fromEntries(
        Object.entries(amounts).map(([resourceClass, total]) => {
          const share = (toReserve.get(resourceClass) ?? 0) / Math.max(1, inChildren.get(resourceClass) ?? 0);
          const reserved = Math.min(total, Math.ceil(total * share));
          return [resourceClass, inventoryOf(spec, { resourceClass, total, reserved })];
        }),
      ),
    })),
  ];
}

/** Measured capacity, overridden and extended by what the operator states. */
function withStated(spec: HostSpec, capacity: Amounts): Amounts {
  if (!spec.inventory) return capacity;
  const stated: Record<string, number> = { ...capacity };
  for (const [resourceClass, { total }] of Object.entries(spec.inventory))
    if (total !== undefined) stated[resourceClass] = total;
  return stated;
}

function childrenOf(spec: HostSpec, told: readonly ChildProvider[]): ChildProvider[] {
  const byName = new Map(told.map((child) => [child.name, child]));
  for (const child of spec.providers ?? []) byName.set(child.name, child);
  return [...byName.values()];
}

function sumOf(children: readonly ChildProvider[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { amounts } of children) {
    for (const [resourceClass, amount] of Object.entries(amounts))
      sums.set(resourceClass, (sums.get(resourceClass) ?? 0) + amount);
  }
  return sums;
}

interface ClassTotal {
  readonly resourceClass: string;
  readonly total: number;
}

function inventoryOf(
  spec: HostSpec,
  { resourceClass, total, reserved }: ClassTotal & { readonly reserved: number },
): Inventory {
  const units = spec.inventory?.[resourceClass];
  return {
    total,
    reserved,
    minUnit: units?.minUnit ?? 1,
    maxUnit: units?.maxUnit ?? Math.max(1, total),
    stepSize: units?.stepSize ?? 1,
    allocationRatio: spec.allocationRatios[resourceClass] ?? 1,
  };
}
