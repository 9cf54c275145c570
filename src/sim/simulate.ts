// One run: a world drawn from one seed, a storm, then calm until the cluster is at rest. The same seed gives the same run to the last
// byte; the machine's clock and randomness have no part in it.
//
//   run/world.ts: what is made     run/phases.ts: storm, calm, restore     run/verdict.ts: what the checkers find

import { type Prng, seededPrng } from '../base/prng.ts';
import { system } from '../base/system.ts';
import { chancesOf, misfortunesOf, narrowed, type Narrowing } from './batch/narrowing.ts';
import { drawFleet } from './fleet-scenario.ts';
import { Phases } from './run/phases.ts';
import { stackOf } from './run/stack-of.ts';
import type { Violation } from './run/verdict.ts';
import { type Size, World } from './run/world.ts';
import { drawScenario, type Scenario } from './scenario.ts';

export interface SimOptions {
  readonly seed: number;
  /** Less, or more, of what the seed draws. */
  readonly narrowing?: Narrowing;
  /** Default: small. */
  readonly size?: Size;
  /** Keeps every line of the trace; slow. */
  readonly trace?: boolean;
}

export interface SimResult {
  readonly seed: number;
  readonly commitHash: string;
  /** Of every moment at which something happened, every request and every change of a guest. */
  readonly traceHash: string;
  readonly commits: number;
  readonly events: number;
  readonly virtualMs: number;
  /** Instances that ran at some time. */
  readonly instancesRun: number;
  readonly faults: Readonly<Record<string, number>>;
  /** The misfortunes of its scenario. */
  readonly drawn: readonly string[];
  readonly violation?: Violation;
  readonly trace: readonly string[];
}

export async function simulate({
  seed,
  narrowing,
  size = 'small',
  trace: tracing = false,
}: SimOptions): Promise<SimResult> {
  const prng = prngOf(seed);
  const drawn = draw(size, prng.split());
  const scenario = narrowed(drawn, narrowing);
  const world = new World({
    seed,
    size,
    scenario,
    hostsDrawn: Math.max(drawn.hosts.length, scenario.hosts.length),
    prng,
    tracing,
  });
  const { verdict } = world;
  const stopListening = system.onUncaught((error) => verdict.violate(0, `uncaught: ${stackOf(error)}`));
  try {
    await new Phases(world).run();
  } catch (error) {
    verdict.violate(0, `thrown: ${stackOf(error)}`);
  } finally {
    await system.turn();
    stopListening();
  }
  world.chances.end(chancesOf(scenario));
  return resultOf(world);
}

function resultOf({ seed, scenario, history, trace, timeline, tally, verdict }: World): SimResult {
  return {
    seed,
    commitHash: history.hash(),
    traceHash: trace.fingerprint(),
    commits: history.commits.length,
    events: timeline.fired,
    virtualMs: Math.round(timeline.nowMs),
    instancesRun: verdict.progress.instancesRun,
    faults: Object.fromEntries([...tally.counts].sort(([a], [b]) => (a < b ? -1 : 1))),
    drawn: misfortunesOf(scenario),
    ...(verdict.violation === undefined ? {} : { violation: verdict.violation }),
    trace: trace.lines,
  };
}

/** What a run of this seed draws before it begins. */
export function drawnBy(seed: number, size: Size): Scenario {
  return draw(size, prngOf(seed).split());
}

function prngOf(seed: number): Prng {
  return seededPrng(seed, 'berth');
}

function draw(size: Size, prng: Prng): Scenario {
  return size === 'fleet' ? drawFleet(prng) : drawScenario(prng);
}
