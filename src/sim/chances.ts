// Chances: what may befall a call, by the rate that the seed drew for its kind. What was drawn is to happen in every run: what luck has
// spared befalls the next call that it can, once a quarter of the storm is over.

import type { Prng } from '../base/prng.ts';
import { nothingToHit, type Tally } from './tally.ts';

export interface Chances {
  /** Whether `kind` befalls this call; `rate` in thousandths, as it is just now. */
  befalls(kind: string, rate: number, prng: Prng): boolean;
  /** Notes which of the kinds that were `drawn` found nothing to befall when they had to. */
  end(drawn: readonly string[]): void;
}

export interface ChancesOptions {
  readonly tally: Tally;
  /** Whether luck has had its time. */
  readonly isDue: () => boolean;
}

export function createChances({ tally, isDue }: ChancesOptions): Chances {
  const tried = new Set<string>();
  return {
    befalls(kind, rate, prng) {
      const isDrawn = prng.chance(rate, 1000);
      const isSpared = rate > 0 && isDue() && !tally.counts.has(kind);
      if (isSpared) tried.add(kind);
      if (!isDrawn && !isSpared) return false;
      tally.hit(kind);
      return true;
    },
    end(drawn) {
      for (const kind of drawn) if (!tally.counts.has(kind) && !tried.has(kind)) tally.hit(`${nothingToHit}-${kind}`);
    },
  };
}
