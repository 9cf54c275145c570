// utilization: how full the host would be, 100 for full. Packing wants it high; spreading weighs its mirror `idleness`.

import { capacityOf } from '../../ledger/ledger.ts';
import type { Candidate, Plugin } from '../framework.ts';
import type { Request } from '../request.ts';

export const utilization: Plugin = { name: 'utilization', score: (candidate, request) => fullness(candidate, request) };

export const idleness: Plugin = { name: 'idleness', score: (candidate, request) => 100 - fullness(candidate, request) };

/** Mean over the asked-for classes of the share in use once the request is placed. */
function fullness({ provider, used }: Candidate, request: Request): number {
  let sum = 0;
  let classes = 0;
  for (const [resourceClass, asked] of Object.entries(request.amounts)) {
    const inventory = provider?.value.inventories[resourceClass];
    const capacity = inventory ? capacityOf(inventory) : 0;
    if (capacity === 0) continue;
    sum += Math.min(1, ((used.get(resourceClass) ?? 0) + asked) / capacity);
    classes += 1;
  }
  return classes === 0 ? 0 : Math.round((100 * sum) / classes);
}
