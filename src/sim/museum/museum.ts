// The museum: every planted bug is put in, and the simulator must find it as what it is. It measures the tests, not the product.

import { readFile } from 'node:fs/promises';
import { systemClock } from '../../base/system.ts';
import { brokenOf, interruptedExitCode, type Out, writeTrace } from '../run.ts';
import { createSeedPool, type SeedPool } from '../seed-pool.ts';
import { type Planted, plantedIn } from './plant.ts';
import { type PlantedBug, plantedBugs } from './planted-bugs.ts';

export interface MuseumOptions {
  /** Default: all. */
  readonly bugs?: readonly string[];
  readonly jobs: number;
  readonly firstSeed: number;
  /** Begins with the seed that has caught it before. */
  readonly quick?: boolean;
  /** So many are tried at most for each. */
  readonly seedsMax: number;
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
  readonly seeds: number;
  readonly seconds: number;
  /** What it was found as instead, with how often. */
  readonly others: ReadonlyMap<string, number>;
}

/** A bug may make a run go round for ever; that is no catch. */
const patienceMs = 8_000;

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
    for (const { bug, others } of missed) {
      const instead = [...others].map(([what, count]) => `${what} (${count})`).join(', ') || 'nothing';
      out.write(
        `"${bug.name}" was not caught in ${options.seedsMax} seeds: the simulator does not see what it must see; found instead: ${instead}\n`,
      );
    }
    const seconds = (systemClock.monotonicMs() - startedAtMs) / 1000;
    out.write(
      `${inOrder.length - missed.length} of ${inOrder.length} planted bugs caught in ${seconds.toFixed(1)} s\n`,
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

/** Seed after seed until one catches it. A seed that fails for another reason, dies or hangs is no catch. */
async function hunt(bug: PlantedBug, options: MuseumOptions, out: Out): Promise<Verdict> {
  const { firstSeed, seedsMax, signal } = options;
  const fresh = Array.from({ length: seedsMax }, (_, i) => firstSeed + i);
  const known = bug.seed === undefined ? [] : [bug.seed];
  // Some show in one run of many hundreds only.
  const inTurn = options.quick ? [...known, ...fresh] : [...fresh, ...known];
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
        return { bug, caughtBy: seed, message, seeds: before + 1, seconds: secondsNow(), others };
      }
      const what = lost ? message.slice(0, 200) : `invariant ${invariant}`;
      others.set(what, (others.get(what) ?? 0) + 1);
    }
    return { bug, seeds: inTurn.length, seconds: secondsNow(), others };
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

function narrowingOf(bug: PlantedBug): { readonly with?: readonly string[] } {
  return bug.with === undefined ? {} : { with: bug.with };
}

function preloadOf({ name }: PlantedBug): string {
  return new URL(`./plant-hook.ts?bug=${name}`, import.meta.url).href;
}

function rowOf({ bug, caughtBy, seeds, seconds, message }: Verdict): Record<string, unknown> {
  const { name, invariant, reenacts } = bug;
  return {
    bug: name,
    invariant,
    reenacts,
    caughtBy: caughtBy ?? null,
    seeds,
    seconds,
    ...(message === undefined ? {} : { message }),
  };
}

function tableOf(verdicts: readonly Verdict[]): string {
  const head = ['BUG', 'INVARIANT', 'CAUGHT BY SEED', 'SEEDS', 'SECONDS'];
  const rows = verdicts.map(({ bug, caughtBy, seeds, seconds }) => [
    bug.name,
    bug.invariant === 0 ? '-' : String(bug.invariant),
    caughtBy === undefined ? 'NOT CAUGHT' : String(caughtBy),
    String(seeds),
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
