// What an allocation holds when one provider gives all of it, as nearly all do. Every provider's id is a property name of its own, and
// V8 describes each object with a new name anew, in two hundred bytes; copies of one object share its description.

import type { Amounts } from '../../api/resources/metadata.ts';
import type { Allocation } from './records.ts';

/** As many providers are remembered, some 100 bytes each; then it begins anew. */
const rememberedMax = 100_000;
/** The first of each provider: only its copies share a description, copies of those would not. */
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
