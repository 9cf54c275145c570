// The amounts of an allocation of one provider, as nearly all are. Each provider's id is a property name of its own,
// and V8 describes each object with a new name separately, in two hundred bytes; copies of one object share its
// description. The table of first objects is bounded, is cleared when full and changes no answer.

import type { Amounts } from '../../api/resources/metadata.ts';
import type { Allocation } from './records.ts';

/** Maximum number of providers remembered, some 100 bytes each; the map is cleared when full. */
const rememberedMax = 100_000;
/** The first object of each provider: only direct copies of it share its description. */
const firstByProvider = new Map<string, Allocation['amounts']>();

/** `{ [providerId]: amounts }`. */
export function heldOfOne(providerId: string, amounts: Amounts): Allocation['amounts'] {
  const first = firstByProvider.get(providerId);
  if (first?.[providerId] === amounts) return first;
  if (first) {
    const held: Record<string, Amounts> = Object.assign({}, first);
    held[providerId] = amounts;
    return held;
  }
  if (firstByProvider.size >= rememberedMax) firstByProvider.clear();
  const held = { [providerId]: amounts };
  firstByProvider.set(providerId, held);
  return held;
}
