// Tally: how often each fault really happened. A batch whose drawn faults never happened has tested nothing.

/** Prefix of the count of a kind that was drawn and found no target. */
export const nothingToHit = 'nothing-to-hit';

export interface Tally {
  hit(kind: string): void;
  readonly counts: ReadonlyMap<string, number>;
}

export function createTally(): Tally {
  const counts = new Map<string, number>();
  return { counts, hit: (kind) => void counts.set(kind, (counts.get(kind) ?? 0) + 1) };
}

/** A tally for one part of a run; the whole counts each hit too, as `prefix-kind`. */
export function partOf(whole: Tally, prefix: string): Tally {
  const own = createTally();
  return {
    counts: own.counts,
    hit(kind) {
      own.hit(kind);
      whole.hit(`${prefix}-${kind}`);
    },
  };
}
