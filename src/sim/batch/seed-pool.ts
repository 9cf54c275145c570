// Seed pool: runs seeds in processes of their own, as many at once as it has jobs. A process that dies or hangs takes one run with it,
// which fails for that; the others go on in new ones.

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { system, systemClock } from '../../base/system.ts';
import type { Timer } from '../../base/clock.ts';
import type { Order } from './seed-worker.ts';
import type { SimResult } from '../simulate.ts';

export interface SeedPool {
  /** A run that did not come to its end has `lost` and a violation that says why. */
  run(order: Order): Promise<PoolResult>;
  /** Ends all processes at once; runs under way are lost. */
  close(): void;
}

export type PoolResult = SimResult & { readonly lost?: true };

export interface SeedPoolOptions {
  readonly jobs: number;
  /** Loaded into each process before anything else: a planted bug. */
  readonly preload?: string;
  readonly patienceMs?: number;
}

interface Waiting {
  readonly order: Order;
  readonly resolve: (result: PoolResult) => void;
}

/** Far more than any run takes: a small one takes a tenth of a second, a fleet some seconds. */
const patienceMsDefault = 180_000;
const stderrKept = 2000;
/** A young generation that holds what a run of some hundred milliseconds makes saves a tenth of the time. */
const nodeFlags = ['--max-semi-space-size=32'];

export function createSeedPool({ jobs, preload, patienceMs = patienceMsDefault }: SeedPoolOptions): SeedPool {
  const waiting: Waiting[] = [];
  const workers = new Set<Worker>();
  let closed = false;

  const next = (): void => {
    if (closed) return;
    for (const worker of workers) {
      if (waiting.length === 0) return;
      if (!worker.busy) worker.take(waiting.shift());
    }
    while (waiting.length > 0 && workers.size < jobs) {
      const worker = startWorker({ ...(preload === undefined ? {} : { preload }), patienceMs }, (ended) => {
        if (ended) workers.delete(worker);
        next();
      });
      workers.add(worker);
      worker.take(waiting.shift());
    }
  };

  return {
    run: (order) =>
      new Promise((resolve) => {
        if (closed) return resolve(lostRun(order, 'the batch was ended'));
        waiting.push({ order, resolve });
        next();
      }),
    close() {
      closed = true;
      for (const worker of workers) worker.kill();
      for (const { order, resolve } of waiting.splice(0)) resolve(lostRun(order, 'the batch was ended'));
    },
  };
}

interface Worker {
  readonly busy: boolean;
  take(next: Waiting | undefined): void;
  kill(): void;
}

/** `onFree` after each run, and when the process has ended. */
function startWorker(
  { preload, patienceMs }: { readonly preload?: string; readonly patienceMs: number },
  onFree: (ended: boolean) => void,
): Worker {
  const child: ChildProcess = spawn(
    system.nodePath(),
    [...nodeFlags, ...(preload === undefined ? [] : ['--import', preload]), fileURLToPath(workerFile())],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  let current: Waiting | undefined;
  let timer: Timer | undefined;
  let why: string | undefined;
  let said = '';

  const finish = (result: PoolResult): void => {
    timer?.cancel();
    const { resolve } = current ?? { resolve: () => {} };
    current = undefined;
    resolve(result);
  };
  const die = (how: string): void => {
    if (current)
      finish(lostRun(current.order, `the process that ran it ${why ?? how}: ${said.trim() || 'it said nothing'}`));
    onFree(true);
  };

  if (child.stdout)
    createInterface({ input: child.stdout }).on('line', (line) => {
      finish(JSON.parse(line) as SimResult); // the codec: seed-worker.ts writes so
      onFree(false);
    });
  child.stderr?.on('data', (bytes: Buffer) => {
    said = (said + bytes.toString()).slice(-stderrKept);
  });
  child.stdin?.on('error', () => {}); // it has ended: 'exit' tells how
  child.on('error', (error) => die(`could not be started (${error.message})`));
  child.on('close', (code, signal) => die(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`));

  return {
    get busy() {
      return current !== undefined;
    },
    take(next) {
      if (next === undefined) return;
      current = next;
      timer = systemClock.setTimer(
        patienceMs,
        () => {
          why = `did not come to an end within ${patienceMs / 1000} s and was killed`;
          child.kill('SIGKILL');
        },
        { background: true },
      );
      child.stdin?.write(`${JSON.stringify(next.order)}\n`);
    },
    kill: () => void child.kill('SIGKILL'),
  };
}

function workerFile(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './seed-worker.ts' : '../seed-worker.js', import.meta.url);
}

function lostRun({ seed }: Order, message: string): PoolResult {
  return {
    seed,
    commitHash: '',
    traceHash: '',
    commits: 0,
    events: 0,
    virtualMs: 0,
    instancesRun: 0,
    faults: {},
    drawn: [],
    violation: { invariant: 0, message, atMs: 0 },
    trace: [],
    lost: true,
  };
}
