// Shrinking: what of a failing run can be left out so that it still breaks the same invariant. Greedy and bounded; it finds a smaller
// failure, not always the smallest.

import type { Clock } from '../../base/clock.ts';
import { misfortunesOf, type Narrowing } from './narrowing.ts';
import type { Scenario } from '../scenario.ts';
import type { SimResult } from '../simulate.ts';

export interface ShrinkOptions {
  readonly scenario: Scenario;
  /** What was left out already when it failed. */
  readonly from: Narrowing;
  readonly invariant: number;
  /** When it broke, since the run began. */
  readonly atMs: number;
  readonly run: (narrowing: Narrowing) => Promise<SimResult>;
  readonly clock: Clock;
}

const runsMax = 60;
const durationMsMax = 60_000;
/** Before the storm begins, at most. */
const preparedMs = 8_000;

export async function shrink(
  options: ShrinkOptions,
): Promise<{ readonly narrowing: Narrowing; readonly runs: number }> {
  const { scenario, clock } = options;
  const endMs = clock.monotonicMs() + durationMsMax;
  let narrowing = options.from;
  let runs = 0;

  const fails = async (candidate: Narrowing): Promise<boolean> => {
    if (runs >= runsMax || clock.monotonicMs() >= endMs) return false;
    runs += 1;
    const { violation } = await options.run(candidate);
    if (violation?.invariant !== options.invariant) return false;
    narrowing = candidate;
    return true;
  };
  const without = (kinds: readonly string[]): Narrowing => ({
    ...narrowing,
    without: [...(narrowing.without ?? []), ...kinds],
  });

  // A shorter storm first: it makes all that follows faster.
  const stormMs = narrowing.stormMs ?? scenario.stormMs;
  for (const shorterMs of shorter(stormMs, options.atMs)) if (await fails({ ...narrowing, stormMs: shorterMs })) break;
  for (const hosts of fewer(narrowing.hosts ?? scenario.hosts.length)) if (await fails({ ...narrowing, hosts })) break;
  for (const servers of fewer(narrowing.servers ?? scenario.controlPlanes))
    if (await fails({ ...narrowing, servers })) break;
  for (const tenants of fewer(narrowing.tenants ?? scenario.tenants)) if (await fails({ ...narrowing, tenants })) break;
  // All at once, then half and half down to each alone.
  const leaveOut = async (kinds: readonly string[]): Promise<void> => {
    if (kinds.length === 0 || (await fails(without(kinds))) || kinds.length === 1) return;
    const half = Math.ceil(kinds.length / 2);
    await leaveOut(kinds.slice(0, half));
    await leaveOut(kinds.slice(half));
  };
  const given = new Set([...(narrowing.without ?? []), ...(narrowing.with ?? [])]);
  await leaveOut(misfortunesOf(scenario).filter((kind) => !given.has(kind)));
  return { narrowing, runs };
}

/** Whole seconds, the shortest first: an eighth, a quarter, half, and to the moment when it broke. */
function shorter(stormMs: number, atMs: number): number[] {
  const brokeMs = Math.max(1000, atMs - preparedMs);
  return [stormMs / 8, stormMs / 4, stormMs / 2, brokeMs]
    .map((ms) => Math.ceil(ms / 1000) * 1000)
    .filter((ms) => ms < stormMs)
    .sort((a, b) => a - b);
}

/** The fewest first. */
function fewer(count: number): number[] {
  return [...new Set([1, 2, Math.ceil(count / 2), count - 1])]
    .filter((each) => each >= 1 && each < count)
    .sort((a, b) => a - b);
}
