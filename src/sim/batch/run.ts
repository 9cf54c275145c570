// Many runs: the seeds that once failed, then fresh ones; says what failed, why, how small it can be made, and how to see it again. It
// checks itself too: a batch whose faults never happened, or that hardly did anything, has tested nothing and fails.

import { systemClock } from '../../base/system.ts';
import { keepSeed, keptSeeds } from './kept-seeds.ts';
import { flagsOf, type Narrowing, narrowed } from './narrowing.ts';
import { createSeedPool, type PoolResult, type SeedPool } from './seed-pool.ts';
import type { Order } from './seed-worker.ts';
import { shrink } from './shrink.ts';
import { drawnBy } from '../simulate.ts';
import { createSum, idleIn } from './worked.ts';

export interface RunSimOptions {
  readonly seeds: number;
  readonly firstSeed: number;
  /** Processes at once. */
  readonly jobs: number;
  /** Every seed twice, in processes of their own, and compared. */
  readonly twice: boolean;
  /** Default: small. */
  readonly size?: 'small' | 'fleet';
  /** Less of each run, or more of some misfortunes. */
  readonly narrowing?: Narrowing;
  /** Of what fails, a smaller run that still does. */
  readonly shrink?: boolean;
  /** Seeds that once failed, which run first; missing: none do. */
  readonly seedsFile?: string;
  /** Writes seeds that fail into `seedsFile`. */
  readonly keep?: boolean;
  /** A line for each run. */
  readonly verbose?: boolean;
  /** One JSON object a line: each run, then the whole. */
  readonly json?: boolean;
  /** Loaded into every process before anything else: a planted bug. */
  readonly preload?: string;
  /** Ends it early. */
  readonly signal?: AbortSignal;
}

export interface Out {
  write(text: string): unknown;
}

/** From here on it is a batch: seeds that once failed are run too, and work is asked for. */
const batchSeedsMin = 20;
const traceLinesShown = 30;
const failuresShownMax = 5;
/** Runs started ahead of the one that is printed next, for each job, so that a long run does not hold up the others. */
const aheadPerJob = 8;
export const interruptedExitCode = 130;

/** Resolves to the exit code: 0 when all is well, 1 when a seed or the batch itself failed, 130 when it was ended early. */
export async function runSim(options: RunSimOptions, out: Out): Promise<number> {
  const { jobs, preload } = options;
  const pool = createSeedPool({ jobs, ...(preload === undefined ? {} : { preload }) });
  const end = (): void => pool.close();
  options.signal?.addEventListener('abort', end, { once: true });
  try {
    return await runBatch(options, pool, out);
  } finally {
    options.signal?.removeEventListener('abort', end);
    pool.close();
  }
}

async function runBatch(options: RunSimOptions, pool: SeedPool, out: Out): Promise<number> {
  const { narrowing = {}, size = 'small', signal, json = false } = options;
  const isBatch = options.seeds >= batchSeedsMin;
  const whole = flagsOf(narrowing) === '';
  const asDrawn = size === 'small' && whole;
  const kept = isBatch && options.seedsFile !== undefined ? await keptSeeds(options.seedsFile, size) : [];
  const fresh = Array.from({ length: options.seeds }, (_, index) => options.firstSeed + index);
  const seeds = [...new Set([...kept, ...fresh])];
  const startedAtMs = systemClock.monotonicMs();
  const sum = createSum();
  const failed: number[] = [];
  let done = 0;
  if (!json) {
    const first = kept.length > 0 ? `${kept.length} that once failed, then ` : '';
    out.write(`simulating ${first}seeds ${options.firstSeed} to ${options.firstSeed + options.seeds - 1}\n`);
  }
  const start = async (seed: number): Promise<readonly [PoolResult, PoolResult]> => {
    const order = { seed, size, narrowing };
    const runs = [pool.run(order), ...(options.twice ? [pool.run(order)] : [])];
    const [result, twice = result] = await Promise.all(runs);
    if (result === undefined || twice === undefined) throw new Error(`seed ${seed} was not run`);
    return [result, twice];
  };
  for await (const [result, twice] of inOrder(seeds, aheadPerJob * options.jobs, start)) {
    if (signal?.aborted) break;
    const { seed } = result;
    const fault = faultOf(result, twice) ?? sum.idleRun(result, whole);
    sum.add(result);
    done += 1;
    if (json) out.write(`${JSON.stringify({ ...result, trace: undefined, ...(fault ? { fault } : {}) })}\n`);
    else if (options.verbose) out.write(`${lineOf(result)}\n`);
    else if (done % toldEvery(seeds.length) === 0) out.write(`${done} of ${seeds.length} seeds\n`);
    if (fault === undefined) continue;
    failed.push(seed);
    if (options.keep && options.seedsFile !== undefined && whole)
      await keepSeed(options.seedsFile, { seed, size, found: fault });
    if (!json && failed.length <= failuresShownMax) await explain({ options, pool, result, fault }, out);
  }
  const interrupted = signal?.aborted === true;
  const idle =
    isBatch && asDrawn && !interrupted ? idleIn(sum, done) : done === 0 && !interrupted ? ['nothing was run'] : [];
  const seconds = (systemClock.monotonicMs() - startedAtMs) / 1000;
  if (json)
    out.write(
      `${JSON.stringify({ ...sum.totals(), failed, idle, seconds, ...(interrupted ? { interrupted } : {}) })}\n`,
    );
  else {
    for (const fault of idle) out.write(`the batch itself failed: ${fault}\n`);
    const { commits, virtualMs, instancesRun, faults } = sum.totals();
    const early = interrupted ? `ended early, after ${done} of ` : '';
    out.write(
      `${early}${seeds.length} seeds, ${failed.length} failed${failed.length > 0 ? ` (${failed.join(', ')})` : ''}: ${commits} commits, ` +
        `${instancesRun} instances ran, ${faults} faults, ${Math.round(virtualMs / 60_000)} min simulated in ${seconds.toFixed(1)} s\n`,
    );
  }
  return interrupted ? interruptedExitCode : failed.length > 0 || idle.length > 0 ? 1 : 0;
}

/** Ten times in a small batch, and often enough in a large one. */
function toldEvery(seeds: number): number {
  return Math.min(50, Math.max(1, Math.round(seeds / 10)));
}

/** What `start` gives for each item, in the order of the items, with at most `ahead` of them under way. */
async function* inOrder<Item, Result>(
  items: readonly Item[],
  ahead: number,
  start: (item: Item) => Promise<Result>,
): AsyncIterable<Result> {
  const underWay: Promise<Result>[] = [];
  for (const item of items) {
    underWay.push(start(item));
    if (underWay.length < ahead) continue;
    const first = underWay.shift();
    if (first) yield await first;
  }
  for (const each of underWay) yield await each;
}

function faultOf(result: PoolResult, twice: PoolResult): string | undefined {
  if (result.lost || twice.lost) return (result.lost ? result : twice).violation?.message;
  if (result.violation) {
    const { invariant, message, atMs } = result.violation;
    return `${brokenOf(invariant)} at ${(atMs / 1000).toFixed(3)} s: ${message}`;
  }
  for (const what of ['commitHash', 'events', 'traceHash'] as const)
    if (result[what] !== twice[what])
      return `two runs of one seed differ in ${what}: ${result[what]} and ${twice[what]}`;
  return undefined;
}

export function brokenOf(invariant: number): string {
  return invariant === 0 ? 'what must never happen did' : `invariant ${invariant} is broken`;
}

interface Failure {
  readonly options: RunSimOptions;
  readonly pool: SeedPool;
  readonly result: PoolResult;
  readonly fault: string;
}

async function explain({ options, pool, result, fault }: Failure, out: Out): Promise<void> {
  const { seed, violation, lost } = result;
  const { narrowing = {}, size = 'small' } = options;
  const again = (flags: string): string =>
    `npm run sim -- --seed ${seed} --seeds 1${size === 'fleet' ? ' --large' : ''}${flags}`;
  out.write(`\nseed ${seed}: ${fault}\n`);
  if (lost) return void out.write(`see it again: ${again(flagsOf(narrowing))}\n\n`);
  await writeTrace(pool, { seed, size, narrowing }, out);
  out.write(`see it again: ${again(flagsOf(narrowing))}\n`);
  if (violation && options.shrink) {
    const scenario = narrowed(drawnBy(seed, size), narrowing);
    const { narrowing: smaller, runs } = await shrink({
      scenario,
      from: narrowing,
      invariant: violation.invariant,
      atMs: violation.atMs,
      run: (candidate) => pool.run({ seed, size, narrowing: candidate }),
      clock: systemClock,
    });
    const flags = flagsOf(smaller);
    if (flags !== flagsOf(narrowing)) out.write(`smaller, after ${runs} runs: ${again(flags)}\n`);
  }
  out.write('\n');
}

/** The last lines of what happened. */
export async function writeTrace(pool: SeedPool, order: Order, out: Out): Promise<void> {
  const { trace } = await pool.run({ ...order, traceLines: traceLinesShown });
  for (const line of trace) out.write(`  ${line.slice(0, 240)}\n`);
}

function lineOf({ seed, commitHash, commits, events, instancesRun, virtualMs, drawn, violation }: PoolResult): string {
  const verdict = violation ? `FAILED invariant ${violation.invariant}` : 'ok';
  return `seed ${seed} ${verdict} ${commitHash}: ${commits} commits, ${events} events, ${instancesRun} instances ran, ${Math.round(virtualMs / 1000)} s; ${drawn.join(' ')}`;
}
