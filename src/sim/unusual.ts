// Unusual: which places of production code do the unusual in this run, and how often. Drawn from the seed; never in the calm phase, which
// shows that the usual is enough to come to rest.

import { type Buggify, type BuggifyPlace, buggifyPlaces } from '../base/buggify.ts';
import type { Prng } from '../base/prng.ts';
import type { Chances } from './world/chances.ts';

/** Passed only a few times in a run: with the usual rates they would hardly ever happen. */
const seldomPassed: ReadonlySet<BuggifyPlace> = new Set([
  'load-small-page',
  'full-pass-early',
  'compact-early',
  'retry-longest',
  'assignments-end',
  'assignments-left',
  'ledger-twice',
]);

/** A quarter of the places, each with its own rate, in thousandths. */
export function drawUnusual(prng: Prng): ReadonlyMap<BuggifyPlace, number> {
  const rates = new Map<BuggifyPlace, number>();
  for (const place of buggifyPlaces) {
    const rate = seldomPassed.has(place) ? 50 + prng.below(300) : 10 + prng.below(41);
    if (prng.chance(1, 4)) rates.set(place, rate);
  }
  return rates;
}

export interface UnusualOptions {
  readonly rates: ReadonlyMap<BuggifyPlace, number>;
  readonly prng: Prng;
  readonly chances: Chances;
  readonly stormy: () => boolean;
}

export function createUnusual({ rates, prng, chances, stormy }: UnusualOptions): Buggify {
  return (place) => {
    const rate = rates.get(place);
    return rate !== undefined && stormy() && chances.befalls(kindOf(place), rate, prng);
  };
}

const prefix = 'unusual-';

/** As a kind of misfortune. */
export function kindOf(place: BuggifyPlace): `unusual-${BuggifyPlace}` {
  return `${prefix}${place}`;
}

export function isUnusual(kind: string): boolean {
  return kind.startsWith(prefix);
}
