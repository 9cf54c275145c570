// Capacity: how many more instances fit, by size and pool; what strands the rest; whether the fleet survives the loss
// of hosts. Everything is tried with the code that places instances: there is no second arithmetic.

import type { Capacity, SizeCapacity } from '../../api/capacity.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { countMore, poolUse } from './count-more.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { lossesInSteps } from './losses.ts';
import { type Request, requestOf } from '../scheduler/request.ts';
import type { Steps } from '../scheduler/steps.ts';

/** Beyond this number of sizes a request must name one of them. */
const sizesMax = 32;

export interface CapacityOptions {
  /** The requested shape; null: every size. */
  readonly asked: Request | null;
  readonly losses: number;
}

export function* capacityInSteps(snapshot: Snapshot, { asked, losses }: CapacityOptions): Steps<Capacity> {
  const sizes: SizeCapacity[] = [];
  if (asked) sizes.push(yield* countMore(snapshot, asked));
  else {
    const named = [...snapshot.list('size')].map(({ value }) => value);
    named.sort((a, b) => a.spec.cpus - b.spec.cpus || a.spec.memoryMiB - b.spec.memoryMiB);
    for (const { metadata } of named.slice(0, sizesMax)) {
      const spec = { size: metadata.name, placement: {}, ports: [] };
      const request = requestOf(snapshot, { metadata: { project: 'default', labels: {} }, spec });
      sizes.push({ size: metadata.name, ...(yield* countMore(snapshot, request)) });
    }
  }
  const pools = yield* poolUse(snapshot);
  return {
    hosts: fleetOf(snapshot).count,
    pools,
    sizes,
    losses: [
      ...(losses >= 1 ? [yield* lossesInSteps(snapshot, 1)] : []),
      ...(losses >= 2 ? [yield* lossesInSteps(snapshot, 2)] : []),
    ],
  };
}
