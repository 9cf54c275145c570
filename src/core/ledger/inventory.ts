// Inventory of a host: what its agent measured, less what is kept back, as its operator wishes.

import type { HostSpec } from '../../api/resources/host.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import type { Inventory } from '../state/records.ts';

/** One inventory per measured class. The operator's `reserved` and ratios win over the agent's. */
export function inventoriesOf(spec: HostSpec, capacity: Amounts, measuredReserve: Amounts): Record<string, Inventory> {
  const inventories: Record<string, Inventory> = {};
  for (const [resourceClass, total] of Object.entries(capacity)) {
    const reserved = Math.min(total, spec.reserved?.[resourceClass] ?? measuredReserve[resourceClass] ?? 0);
    const allocationRatio = spec.allocationRatios[resourceClass] ?? 1;
    inventories[resourceClass] = {
      total,
      reserved,
      minUnit: 1,
      maxUnit: Math.max(1, total),
      stepSize: 1,
      allocationRatio,
    };
  }
  return inventories;
}
