// Worked: whether runs tested anything. A run that wrote hardly anything, or a batch in which a fault never happened, proves nothing.

import { mustHappen, mustHappenInMany } from './must-happen.ts';
import { faultKinds } from '../faults/registry.ts';
import type { SimResult } from '../simulate.ts';
import { nothingToHit } from './tally.ts';
import { isUnusual } from '../unusual.ts';

/** The minimum for a run that proves anything: it prepares, its hosts join, it comes to rest, and what it drew has happened. */
const commitsPerRunMin = 12;
const eventsPerRunMin = 300;
const virtualMsPerRunMin = 25_000;
const commitsPerSeedMin = 60;
const instancesRunPerSeedMin = 3;
/**
 * Runs on hosts that are too small for most guests are worth something, too, and some places are seldom passed. Of what is seen in two
 * thousand seeds, 0.16 (drivers that fail) and 0.48 (a full pass), it is a little more.
 */
const nothingToHitShares = { usual: 0.2, unusual: 0.5 };
/** A kind that this many runs drew must have happened in one of them. */
const drawnRunsMin = 10;
/** What is rarer than a fault may miss a smaller batch. */
const everythingSeedsMin = 100;
const rareSeedsMin = 1000;

interface Totals {
  readonly commits: number;
  readonly events: number;
  readonly virtualMs: number;
  readonly instancesRun: number;
  readonly faults: number;
  readonly byKind: Readonly<Record<string, number>>;
}

export interface Sum {
  add(result: SimResult): void;
  totals(): Totals;
  /** How many runs drew each kind of misfortune. */
  readonly drawn: ReadonlyMap<string, number>;
  /** Why this run proves nothing; of one that was narrowed, less is asked. */
  idleRun(result: SimResult, asDrawn: boolean): string | undefined;
}

export function createSum(): Sum {
  const happened = new Map<string, number>();
  const drawn = new Map<string, number>();
  const totals = { commits: 0, events: 0, virtualMs: 0, instancesRun: 0 };
  return {
    drawn,
    add(result) {
      totals.commits += result.commits;
      totals.events += result.events;
      totals.virtualMs += result.virtualMs;
      totals.instancesRun += result.instancesRun;
      for (const [kind, count] of Object.entries(result.faults)) happened.set(kind, (happened.get(kind) ?? 0) + count);
      for (const kind of result.drawn) drawn.set(kind, (drawn.get(kind) ?? 0) + 1);
    },
    totals: () => ({
      ...totals,
      faults: faultKinds.reduce((sum, kind) => sum + (happened.get(kind) ?? 0), 0),
      byKind: Object.fromEntries(happened),
    }),
    idleRun({ commits, events, virtualMs, drawn: kinds, faults }, asDrawn) {
      if (commits === 0 || events === 0) return 'nothing happened in it';
      if (!asDrawn) return undefined;
      const missed = kinds.filter(
        (kind) => faults[kind] === undefined && faults[`${nothingToHit}-${kind}`] === undefined,
      );
      if (missed.length > 0) return `it drew ${missed.join(', ')}, and none of that happened`;
      if (commits >= commitsPerRunMin && events >= eventsPerRunMin && virtualMs >= virtualMsPerRunMin) return undefined;
      return `hardly anything happened in it: ${commits} commits and ${events} events in ${virtualMs / 1000} s`;
    },
  };
}

/** Why a batch of this many seeds proves nothing. */
export function idleIn(sum: Sum, seeds: number): string[] {
  const { commits, instancesRun, byKind } = sum.totals();
  const found: string[] = [];
  if (seeds === 0) found.push('nothing was run');
  if (commits < seeds * commitsPerSeedMin)
    found.push(`${commits} commits in ${seeds} seeds are too few; ${commitsPerSeedMin} each are asked for`);
  if (instancesRun < seeds * instancesRunPerSeedMin)
    found.push(`${instancesRun} instances ran in ${seeds} seeds; ${instancesRunPerSeedMin} each are asked for`);
  for (const [kind, runs] of sum.drawn) {
    if (runs < drawnRunsMin) continue;
    const inVain = byKind[`${nothingToHit}-${kind}`] ?? 0;
    if (inVain > inVainMax(runs, nothingToHitShares[isUnusual(kind) ? 'unusual' : 'usual']))
      found.push(`"${kind}" found nothing to hit in ${inVain} of the ${runs} runs that drew it`);
    if (byKind[kind] === undefined) found.push(`"${kind}" was drawn by ${runs} runs and never happened`);
  }
  if (seeds >= everythingSeedsMin)
    for (const kind of mustHappen)
      if (byKind[kind] === undefined && (sum.drawn.get(kind) ?? 0) < drawnRunsMin)
        found.push(`"${kind}" never happened`);
  if (seeds >= rareSeedsMin)
    for (const kind of mustHappenInMany) if (byKind[kind] === undefined) found.push(`"${kind}" never happened`);
  return found;
}

/** The share, and three standard deviations of as many draws for chance. */
function inVainMax(runs: number, share: number): number {
  return runs * share + 3 * Math.sqrt(runs * share * (1 - share));
}
