// The museum: every planted bug is put in, and the simulator must find it as what it is, within a number of runs. It measures the tests, not the
// product. Its budget is a number of runs, never a time: the same code has the same outcome on every machine.

import { readFile } from 'node:fs/promises';
import { systemClock } from '../../base/system.ts';
import type { Narrowing } from '../batch/narrowing.ts';
import { brokenOf, interruptedExitCode, type Out, writeTrace } from '../batch/run.ts';
import { createSeedPool, type SeedPool } from '../batch/seed-pool.ts';
import { type Planted, plantedIn } from './plant.ts';
import { budgets, museumWorld, type PlantedBug, plantedBugs } from './planted-bugs.ts';

export interface MuseumOptions {
  /** Default: all. */
  readonly bugs?: readonly string[];
  readonly jobs: number;
  readonly firstSeed: number;
  /** Rare ones begin with the seed that has caught them before; it is part of the budget. */
  readonly quick?: boolean;
  /** Runs at most for each; default: the budget of each. */
  readonly seedsMax?: number | undefined;
  /** What led to the catch, of each. */
  readonly verbose?: boolean;
  readonly json?: boolean;
  readonly signal?: AbortSignal;
}

interface Verdict {
  readonly bug: PlantedBug;
  /** Undefined: not caught. */
  readonly caughtBy?: number;
  readonly message?: string;
  readonly runs: number;
  readonly budget: number;
  readonly seconds: number;
  /** What it was found as instead, with how often. */
  readonly others: ReadonlyMap<string, number>;
}

/** A bug may make a run go round for ever; that is no catch. Far more than a run takes, on a busy machine too. */
const patienceMs = 60_000;

/** Resolves to the exit code: 0 when every one was caught, 1 when one was not or has no place any more. */
export async function runMuseum(options: MuseumOptions, out: Out): Promise<number> {
  const unknown = options.bugs?.find((name) => !plantedBugs.some((bug) => bug.name === name));
  if (unknown !== undefined) {
    out.write(`there is no planted bug "${unknown}"; there are: ${plantedBugs.map(({ name }) => name).join(', ')}\n`);
    return 2;
  }
  const bugs = plantedBugs.filter(({ name }) => options.bugs?.includes(name) ?? true);
  const misplaced = await misplacedOf(bugs);
  for (const fault of misplaced) out.write(`${fault}\n`);
  if (misplaced.length > 0) return 1;

  const startedAtMs = systemClock.monotonicMs();
  const waiting = [...bugs];
  const verdicts = new Map<PlantedBug, Verdict>();
  const hunter = async (): Promise<void> => {
    for (let bug = waiting.shift(); bug && !options.signal?.aborted; bug = waiting.shift()) {
      const verdict = await hunt(bug, options, out);
      verdicts.set(bug, verdict);
      if (options.json) out.write(`${JSON.stringify(rowOf(verdict))}\n`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(options.jobs, bugs.length) }, hunter));
  if (options.signal?.aborted) return interruptedExitCode;
  const inOrder = bugs.flatMap((bug) => verdicts.get(bug) ?? []);
  const missed = inOrder.filter(({ caughtBy }) => caughtBy === undefined);
  if (!options.json) {
    out.write(tableOf(inOrder));
    for (const { bug, budget, others } of missed) {
      const instead = [...others].map(([what, count]) => `${what} (${count})`).join(', ') || 'nothing';
      out.write(
        `"${bug.name}" was not caught in ${budget} runs: the simulator does not see what it must see; found instead: ${instead}\n`,
      );
    }
    const seconds = (systemClock.monotonicMs() - startedAtMs) / 1000;
    out.write(
      `${inOrder.length - missed.length} of ${inOrder.length} planted bugs caught in ${runsOf(inOrder)} runs, ${seconds.toFixed(1)} s\n`,
    );
  }
  return missed.length > 0 || inOrder.length < bugs.length || inOrder.length === 0 ? 1 : 0;
}

/** Of each bug whose place is not there exactly once, why. */
export async function misplacedOf(bugs: readonly Planted[]): Promise<string[]> {
  const faults: string[] = [];
  for (const bug of bugs) {
    try {
      plantedIn(await readFile(new URL(`../../${bug.file}`, import.meta.url), 'utf8'), bug);
    } catch (error) {
      faults.push(error instanceof Error ? error.message : `${bug.name}: ${String(error)}`);
    }
  }
  return faults;
}

const runsOf = (verdicts: readonly Verdict[]): number => verdicts.reduce((sum, { runs }) => sum + runs, 0);

/** Seed after seed until one catches it. A seed that fails for another reason, dies or hangs is no catch. */
async function hunt(bug: PlantedBug, options: MuseumOptions, out: Out): Promise<Verdict> {
  const { firstSeed, signal } = options;
  const budget = options.seedsMax ?? (bug.rare ? budgets.rare : budgets.common);
  const hint = options.quick ? bug.rare?.hint : undefined;
  const fresh = Array.from({ length: budget }, (_, i) => firstSeed + i);
  const inTurn = [...(hint === undefined ? [] : [hint]), ...fresh].slice(0, budget);
  const pool = createSeedPool({ jobs: 1, preload: preloadOf(bug), patienceMs });
  const end = (): void => pool.close();
  signal?.addEventListener('abort', end, { once: true });
  const startedAtMs = systemClock.monotonicMs();
  const secondsNow = (): number => (systemClock.monotonicMs() - startedAtMs) / 1000;
  const others = new Map<string, number>();
  try {
    for (const [before, seed] of inTurn.entries()) {
      if (signal?.aborted) break;
      const { violation, lost } = await pool.run({ seed, narrowing: narrowingOf(bug) });
      if (violation === undefined) continue;
      const { invariant, message } = violation;
      if (!lost && invariant === bug.invariant) {
        if (options.verbose && !options.json) await show({ bug, seed, message, pool }, out);
        return { bug, caughtBy: seed, message, runs: before + 1, budget, seconds: secondsNow(), others };
      }
      const what = lost ? message.slice(0, 200) : `invariant ${invariant}`;
      others.set(what, (others.get(what) ?? 0) + 1);
    }
    return { bug, runs: inTurn.length, budget, seconds: secondsNow(), others };
  } finally {
    signal?.removeEventListener('abort', end);
    pool.close();
  }
}

async function show(
  { bug, seed, message, pool }: { bug: PlantedBug; seed: number; message: string; pool: SeedPool },
  out: Out,
): Promise<void> {
  out.write(`\n${bug.name}: ${bug.reenacts}\nseed ${seed}: ${brokenOf(bug.invariant)}: ${message}\n`);
  await writeTrace(pool, { seed, narrowing: narrowingOf(bug) }, out);
  out.write(`see it again: npm run sim -- --plant ${bug.name} --seed ${seed} --seeds 1 --verbose\n\n`);
}

function narrowingOf(bug: PlantedBug): Narrowing {
  return { ...(bug.world ?? museumWorld), ...(bug.with === undefined ? {} : { with: bug.with }) };
}

function preloadOf({ name }: PlantedBug): string {
  return new URL(`./plant-hook.ts?bug=${name}`, import.meta.url).href;
}

function rowOf({ bug, caughtBy, runs, budget, seconds, message }: Verdict): Record<string, unknown> {
  const { name, invariant, reenacts } = bug;
  return {
    bug: name,
    invariant,
    reenacts,
    caughtBy: caughtBy ?? null,
    runs,
    budget,
    seconds,
    ...(message === undefined ? {} : { message }),
  };
}

function tableOf(verdicts: readonly Verdict[]): string {
  const head = ['BUG', 'INVARIANT', 'CAUGHT BY SEED', 'RUNS', 'OF', 'SECONDS'];
  const rows = verdicts.map(({ bug, caughtBy, runs, budget, seconds }) => [
    bug.name,
    bug.invariant === 0 ? '-' : String(bug.invariant),
    caughtBy === undefined ? 'NOT CAUGHT' : String(caughtBy),
    String(runs),
    String(budget),
    seconds.toFixed(1),
  ]);
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  return [head, ...rows]
    .map(
      (row) =>
        `${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  ')}\n`,
    )
    .join('');
}
