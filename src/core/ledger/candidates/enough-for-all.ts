// Enough for all: whether the slots that remain can each have a provider, as far as a matching can tell. Without this check, eight
// groups that need eight devices would try all orders of seven before they fail.

import type { CandidateProvider } from '../candidate-question.ts';
import { capacityOf } from '../ledger.ts';
import type { Slot } from './slots.ts';

export interface Choices {
  readonly slots: readonly Slot[];
  /** The providers of the first slots. */
  readonly chosen: readonly CandidateProvider[];
  readonly claimed: ReadonlyMap<CandidateProvider, ReadonlyMap<string, number>>;
  /** Whether groups with a suffix need a provider each. */
  readonly isolate: boolean;
}

/** False only when no choice can work. Exact when all slots ask the same of a class, or only for isolation. */
export function enoughForAll(choices: Choices): boolean {
  const remaining = choices.slots.slice(choices.chosen.length);
  if (choices.isolate && !canIsolate(choices, remaining)) return false;
  return [...new Set(remaining.flatMap(({ amounts }) => Object.keys(amounts)))].every((resourceClass) => {
    const least = new Set(remaining.flatMap(({ amounts }) => amounts[resourceClass] ?? []));
    return [...least].every((amount) => hasPlacesFor(remaining, { resourceClass, amount, choices }));
  });
}

interface Ask {
  readonly resourceClass: string;
  readonly amount: number;
  readonly choices: Choices;
}

/** Whether the slots that ask for at least this amount can each have it. */
function hasPlacesFor(remaining: readonly Slot[], ask: Ask): boolean {
  const asking = remaining.filter(({ amounts }) => (amounts[ask.resourceClass] ?? 0) >= ask.amount);
  return matches(asking, (provider) =>
    placesOf(provider, ask.choices.claimed.get(provider)?.get(ask.resourceClass) ?? 0, ask),
  );
}

function canIsolate({ slots, chosen }: Choices, remaining: readonly Slot[]): boolean {
  const taken = new Set(chosen.filter((_, at) => slots[at]?.group.suffix !== ''));
  const granular = remaining.filter(({ group }) => group.suffix !== '');
  return matches(granular, (provider) => (taken.has(provider) ? 0 : 1));
}

/** How often a provider can give the amount. */
function placesOf({ inventories, used }: CandidateProvider, claimed: number, { resourceClass, amount }: Ask): number {
  const inventory = inventories[resourceClass];
  if (!inventory) return 0;
  const free = Math.min(capacityOf(inventory) - (used.get(resourceClass) ?? 0), inventory.maxUnit) - claimed;
  return Math.max(0, Math.floor(free / amount));
}

/** Whether each slot can have one of its options, where a provider has a limited number of places (Kuhn's augmenting paths). */
function matches(slots: readonly Slot[], placesIn: (provider: CandidateProvider) => number): boolean {
  // With as many options that have a place as there are slots, each slot finds one whatever the others take.
  const open = slots.filter(({ options }) => !hasPlaces(options, placesIn, slots.length));
  if (open.length === 0) return true;
  const holders = new Map<CandidateProvider, Slot[]>();
  return slots.every((slot) => augment(slot, { placesIn, holders, seen: new Set() }));
}

function hasPlaces(
  options: readonly CandidateProvider[],
  placesIn: (provider: CandidateProvider) => number,
  wanted: number,
): boolean {
  let places = 0;
  for (const option of options) {
    if (placesIn(option) > 0) places++;
    if (places >= wanted) return true;
  }
  return false;
}

interface Matching {
  readonly placesIn: (provider: CandidateProvider) => number;
  readonly holders: Map<CandidateProvider, Slot[]>;
  readonly seen: Set<CandidateProvider>;
}

function augment(slot: Slot, matching: Matching): boolean {
  const { placesIn, holders, seen } = matching;
  for (const option of slot.options) {
    if (seen.has(option)) continue;
    seen.add(option);
    const held = holders.get(option) ?? [];
    if (held.length < placesIn(option)) {
      holders.set(option, [...held, slot]);
      return true;
    }
    for (const [at, other] of held.entries()) {
      if (!augment(other, matching)) continue;
      holders.set(option, held.with(at, slot));
      return true;
    }
  }
  return false;
}
