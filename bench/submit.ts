// What a create costs from end to end: HTTP, decision, SQLite with fsync, the watch event that shows it bound. A server process as
// users install it, 5,000 registered hosts, the load in a worker beside it.

import { spawn } from 'node:child_process';
import { fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { type Emit, median } from './row.ts';
import { buildProduct, startServerProcess } from './server-process.ts';
import type { LoadFigures, LoadInput, Pattern } from './submit-load.ts';

const suite = 'scheduler';
const dayMs = 86_400_000;

export interface SubmitOptions {
  readonly hosts?: number;
  /** Of the measuring times; 1 is what counts. */
  readonly scale?: number;
  /** For profiles. */
  readonly nodeArguments?: readonly string[];
  readonly patterns?: readonly Pattern[];
  /** Called after each pattern. */
  readonly told?: (figures: Partial<LoadFigures>) => void;
}

const allPatterns: readonly Pattern[] = ['steady', 'single', 'batch', 'burst'];

/** Emits the rows `submit_bound_*`, `durable_*` and `burst_10k_s`; takes about a minute. */
export async function runSubmit(emit: Emit, options: SubmitOptions = {}): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-bench-submit-'));
  buildProduct();
  const bare = await startBareServer();
  try {
    const fsync = fsyncMs(join(directory, 'fsync'));
    const server = await startServerProcess(join(directory, 'server'), {
      // The hosts register once and then say nothing more.
      env: { BERTH_SERVER_OFFLINE_AFTER_MS: String(dayMs) },
      nodeArguments: options.nodeArguments ?? [],
    });
    try {
      const names = Array.from({ length: options.hosts ?? 5_000 }, (_, i) => `bench-${i}`);
      const input = {
        target: { url: server.url, token: server.operatorToken },
        bareUrl: bare.url,
        hosts: names.map((name) => ({ name, token: server.hostToken(name) })),
        scale: options.scale ?? 1,
        patterns: options.patterns ?? allPatterns,
      };
      const machine = { fsyncMs: fsync, bareHttpP50Ms: Number.NaN, bareHttpPerSecond: Number.NaN };
      await load(input, (figures) => {
        Object.assign(machine, figures);
        options.told?.(figures);
        emitAll(emit, figures, machine);
      });
    } finally {
      await server.close();
    }
  } finally {
    bare.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * Limits: for times one fsync and one bare HTTP exchange, for rates what Node's bare HTTP server takes from the same generator. Peers:
 * kube-scheduler 1.20 on this kind of machine (p50 18 ms, p99 1.1 s) and Nomad's published 3,750 placements a second.
 */
function emitAll(emit: Emit, figures: Partial<LoadFigures>, machine: Machine): void {
  const lower = (name: string, value: number | undefined, unit: string, goal: number, limit: number, peer: number) => {
    if (value !== undefined)
      emit({ suite, name, value, unit, better: 'lower', goal, limit, peer, ratio: value / limit });
  };
  const higher = (name: string, value: number | undefined, goal: number, limit: number) => {
    const peer = nomadPerSecond;
    if (value !== undefined)
      emit({ suite, name, value, unit: '1/s', better: 'higher', goal, limit, peer, ratio: value / limit });
  };
  const { bareHttpPerSecond } = machine;
  const exchangeMs = machine.fsyncMs + machine.bareHttpP50Ms / 16; // sixteen clients shared it
  lower('submit_bound_p50_ms', figures.boundP50Ms, 'ms', 1.5, exchangeMs, 18);
  lower('submit_bound_p99_ms', figures.boundP99Ms, 'ms', 5, exchangeMs, 1_100);
  higher('durable_single_per_s', figures.singlePerSecond, 10_000, bareHttpPerSecond);
  higher('durable_batch_per_s', figures.batchPerSecond, 50_000, bareHttpPerSecond * 100);
  lower('burst_10k_s', figures.burstSeconds, 's', 1, 10_000 / bareHttpPerSecond, 10_000 / nomadPerSecond);
}

interface Machine {
  readonly fsyncMs: number;
  readonly bareHttpP50Ms: number;
  readonly bareHttpPerSecond: number;
}

const nomadPerSecond = 3_750;

/** Calls `told` with the figures of each pattern when it is done; resolves after the last. */
function load(input: LoadInput, told: (figures: Partial<LoadFigures>) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./submit-load.ts', import.meta.url), { workerData: input });
    worker.on('message', told);
    worker.once('error', reject);
    worker.once('exit', (code) => (code === 0 ? resolve() : reject(new Error('the load ended early'))));
  });
}

async function startBareServer(): Promise<{ url: string; close(): void }> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./bare-http.ts', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const port = await new Promise<string>((resolve) =>
    child.stdout.once('data', (bytes: Buffer) => resolve(bytes.toString().trim())),
  );
  return { url: `http://127.0.0.1:${port}`, close: () => void child.kill() };
}

/** Appending 512 bytes and syncing them, as the disk does it. */
function fsyncMs(path: string): number {
  const file = openSync(path, 'a');
  const bytes = Buffer.alloc(512, 1);
  const times = Array.from({ length: 300 }, () => {
    const at = performance.now();
    writeSync(file, bytes);
    fdatasyncSync(file);
    return performance.now() - at;
  });
  return median(times);
}
