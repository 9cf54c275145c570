// Many runs: the seeds that once failed, then fresh ones; says what failed, why, and how to see it again. It checks itself too: a batch
// whose faults never happened, or that hardly did anything, has tested nothing and fails.

import { readFile } from 'node:fs/promises';
import { systemClock } from '../base/system.ts';
import { mustHappen } from './must-happen.ts';
import { plants } from './plants.ts';
import { faultKinds } from './scenario.ts';
import { type SimResult, simulate } from './simulate.ts';

export interface RunSimOptions {
  readonly seeds: number;
  readonly firstSeed: number;
  /** The name of a planted bug, which must be found. */
  readonly plant?: string;
  /** Runs every seed twice; else only the first few. */
  readonly checkDeterminism: boolean;
  /** A line for each run; with a planted bug, what led to its being caught. */
  readonly verbose: boolean;
  /** One JSON object a line: each run, then the whole. */
  readonly json?: boolean;
}

interface Out {
  write(text: string): unknown;
}

/** From here on it is a batch: seeds.txt is run too, and work is asked for. */
const batchSeedsMin = 20;
/** Rare faults may miss a smaller batch. */
const everyFaultSeedsMin = 100;
const commitsPerSeedMin = 60;
const instancesRunPerSeedMin = 3;
const checkedTwice = 3;
const traceLinesShown = 30;
const failuresShownMax = 5;

/** Resolves to the exit code: 0 when all is well; with a planted bug, when that was caught as what it is. */
export async function runSim(options: RunSimOptions, out: Out): Promise<number> {
  if (options.plant !== undefined && plants[options.plant] === undefined) {
    out.write(`there is no planted bug "${options.plant}"; there are: ${Object.keys(plants).join(', ')}\n`);
    return 2;
  }
  return options.plant === undefined ? runBatch(options, out) : runPlanted({ ...options, plant: options.plant }, out);
}

async function runBatch(options: RunSimOptions, out: Out): Promise<number> {
  const isBatch = options.seeds >= batchSeedsMin;
  const once = isBatch ? await onceFailed() : [];
  const fresh = Array.from({ length: options.seeds }, (_, index) => options.firstSeed + index);
  const seeds = [...new Set([...once, ...fresh])];
  const startedMs = systemClock.monotonicMs();
  const sum = createSum();
  const failed: number[] = [];
  if (!options.json) {
    const kept = once.length > 0 ? `${once.length} that once failed, then ` : '';
    out.write(`simulating ${kept}seeds ${options.firstSeed} to ${options.firstSeed + options.seeds - 1}\n`);
  }
  for (const [index, seed] of seeds.entries()) {
    const result = await simulate({ seed });
    const twice = options.checkDeterminism || index < checkedTwice ? await simulate({ seed }) : result;
    const fault = faultOf(result, twice);
    sum.add(result);
    if (options.json) out.write(`${JSON.stringify({ ...result, trace: undefined, ...(fault ? { fault } : {}) })}\n`);
    else if (options.verbose) out.write(`${lineOf(result)}\n`);
    else if ((index + 1) % 50 === 0) out.write(`${index + 1} of ${seeds.length} seeds\n`);
    if (fault === undefined) continue;
    failed.push(seed);
    if (!options.json && failed.length <= failuresShownMax) await explainFailure({ seed }, fault, out);
  }
  const idle = isBatch ? sum.missing(seeds.length) : [];
  const seconds = (systemClock.monotonicMs() - startedMs) / 1000;
  if (options.json) out.write(`${JSON.stringify({ ...sum.totals(), failed, idle, seconds })}\n`);
  else {
    for (const fault of idle) out.write(`the batch itself failed: ${fault}\n`);
    const { commits, virtualMs, instancesRun, faults } = sum.totals();
    out.write(
      `${seeds.length} seeds, ${failed.length} failed${failed.length > 0 ? ` (${failed.join(', ')})` : ''}: ${commits} commits, ` +
        `${instancesRun} instances ran, ${faults} faults, ${Math.round(virtualMs / 60_000)} min simulated in ${seconds.toFixed(1)} s\n`,
    );
  }
  return failed.length > 0 || idle.length > 0 ? 1 : 0;
}

/** Seeds until one catches the bug. A seed that fails for another reason is no catch. */
async function runPlanted(options: RunSimOptions & { readonly plant: string }, out: Out): Promise<number> {
  const { plant, firstSeed, seeds } = options;
  const expected = plants[plant]?.invariant;
  for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
    const { violation } = await simulate({ seed, plant });
    if (options.json) out.write(`${JSON.stringify({ seed, plant, violation })}\n`);
    if (violation?.invariant !== expected) continue;
    if (!options.json) {
      if (options.verbose) await explainFailure({ seed, plant }, `invariant ${expected} is broken`, out);
      out.write(
        `seed ${seed} caught "${plant}" as invariant ${expected} after ${seed - firstSeed + 1} seeds: ${violation?.message}\n`,
      );
    }
    return 0;
  }
  if (!options.json)
    out.write(`"${plant}" was not caught in ${seeds} seeds: the simulator does not see what it must see\n`);
  return 1;
}

function faultOf(result: SimResult, twice: SimResult): string | undefined {
  if (result.violation) {
    const { invariant, message, atMs } = result.violation;
    const what = invariant === 0 ? 'what must never happen did' : `invariant ${invariant} is broken`;
    return `${what} at ${(atMs / 1000).toFixed(3)} s: ${message}`;
  }
  if (result.commitHash !== twice.commitHash || result.events !== twice.events) {
    return `two runs of one seed differ: ${result.commitHash} after ${result.events} events, ${twice.commitHash} after ${twice.events}`;
  }
  return undefined;
}

async function explainFailure(failed: { seed: number; plant?: string }, fault: string, out: Out): Promise<void> {
  const { trace } = await simulate({ ...failed, trace: true });
  out.write(`\nseed ${failed.seed}: ${fault}\n`);
  for (const line of trace.slice(-traceLinesShown)) out.write(`  ${line.slice(0, 240)}\n`);
  const plant = failed.plant === undefined ? '' : ` --plant ${failed.plant}`;
  out.write(`see it again: npm run sim -- --seed ${failed.seed} --seeds 1${plant}\n\n`);
}

function lineOf({ seed, commitHash, commits, events, instancesRun, virtualMs, drawn, violation }: SimResult): string {
  const verdict = violation ? `FAILED invariant ${violation.invariant}` : 'ok';
  return `seed ${seed} ${verdict} ${commitHash}: ${commits} commits, ${events} events, ${instancesRun} instances ran, ${Math.round(virtualMs / 1000)} s; ${drawn.join(' ')}`;
}

function createSum() {
  const faults = new Map<string, number>();
  const totals = { commits: 0, events: 0, virtualMs: 0, instancesRun: 0 };
  return {
    add(result: SimResult): void {
      totals.commits += result.commits;
      totals.events += result.events;
      totals.virtualMs += result.virtualMs;
      totals.instancesRun += result.instancesRun;
      for (const [kind, count] of Object.entries(result.faults)) faults.set(kind, (faults.get(kind) ?? 0) + count);
    },
    totals: () => ({
      ...totals,
      faults: faultKinds.reduce((sum, kind) => sum + (faults.get(kind) ?? 0), 0),
      byKind: Object.fromEntries(faults),
    }),
    /** Why this batch proves nothing. */
    missing(seeds: number): string[] {
      const found: string[] = [];
      if (totals.commits < seeds * commitsPerSeedMin)
        found.push(`${totals.commits} commits in ${seeds} seeds are too few; ${commitsPerSeedMin} each are asked for`);
      if (totals.instancesRun < seeds * instancesRunPerSeedMin)
        found.push(
          `${totals.instancesRun} instances ran in ${seeds} seeds; ${instancesRunPerSeedMin} each are asked for`,
        );
      if (seeds >= everyFaultSeedsMin)
        for (const kind of mustHappen) if (!faults.has(kind)) found.push(`"${kind}" never happened`);
      return found;
    },
  };
}

/** One a line, with what it found; none where the file was left out of a build. */
async function onceFailed(): Promise<number[]> {
  const text = await readFile(new URL('./seeds.txt', import.meta.url), 'utf8').catch(() => '');
  return text.split('\n').flatMap((line) => {
    const seed = Number(line.split(' ', 1)[0]);
    return line.trim() === '' || line.startsWith('#') || !Number.isInteger(seed) ? [] : [seed];
  });
}
