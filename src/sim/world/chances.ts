// Chances: what may befall a call, by the rate that the seed drew for its kind. What was drawn is to happen in every run: luck may spare
// the first few calls of a kind, and if it does, the next is not.

import type { BuggifyPlace } from '../../base/buggify.ts';
import type { Prng } from '../../base/prng.ts';
import { nothingToHit, type Tally } from '../batch/tally.ts';
import type { Weather } from './weather.ts';

/** What has a rate, and befalls calls. */
export type Chance =
  | `network-${keyof Weather['network']}`
  | `store-${keyof Weather['store']}`
  | `disk-${keyof Weather['disk']}`
  | `unusual-${BuggifyPlace}`;

export interface Chances {
  /** Whether `kind` befalls this call; `rate` in thousandths, as it is just now. */
  befalls(kind: Chance, rate: number, prng: Prng): boolean;
  /** Notes which of the kinds that were `drawn` did not happen, as there were too few calls. */
  end(drawn: readonly string[]): void;
}

/** Of each kind. In some runs there are only a few calls that a stream breaks on, or that a server begins with. */
const sparedMax = 2;

export function createChances({ tally, prng }: { readonly tally: Tally; readonly prng: Prng }): Chances {
  /** How many more calls luck may spare, by the kinds that have had one. */
  const left = new Map<string, number>();
  return {
    befalls(kind, rate, own) {
      const isDrawn = own.chance(rate, 1000);
      if (rate === 0) return false;
      const may = left.get(kind) ?? prng.below(sparedMax + 1);
      left.set(kind, may - 1);
      if (!isDrawn && (may > 0 || tally.counts.has(kind))) return false;
      tally.hit(kind);
      return true;
    },
    end(drawn) {
      for (const kind of drawn)
        if (!tally.counts.has(kind) && (left.get(kind) ?? 0) >= 0) tally.hit(`${nothingToHit}-${kind}`);
    },
  };
}
