// Texts for explanations about the usage of Placement API clients on a host, which no instance or task shows.

import type { Amounts } from '../../api/resources/metadata.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { listed } from '../scheduler/words.ts';

/** For the classes in `asked`: "16 VCPU are held by 3 outside consumers"; undefined: they use none of these classes. */
export function outsideHeld(snapshot: Snapshot, host: string, asked: Amounts): string | undefined {
  const held = new Map<string, number>();
  const consumers = new Set<string>();
  for (const { value } of snapshot.allocationsOnHost(host)) {
    if (value.consumer.kind !== 'outside') continue;
    for (const amounts of Object.values(value.amounts)) {
      for (const [resourceClass, amount] of Object.entries(amounts)) {
        if ((asked[resourceClass] ?? 0) === 0) continue;
        held.set(resourceClass, (held.get(resourceClass) ?? 0) + amount);
        consumers.add(value.consumer.id);
      }
    }
  }
  if (consumers.size === 0) return undefined;
  const amounts = listed([...held].map(([resourceClass, amount]) => `${amount} ${resourceClass}`));
  return `${amounts} are held by ${consumers.size === 1 ? 'an outside consumer' : `${consumers.size} outside consumers`}`;
}
