// Suite `store`: what each backend costs Berth, and how a control plane on it fares with many watchers, many instances, many hosts.
// `npm run bench -- store [--json]`; BERTH_BENCH_STORE=sqlite,start measures only what it names (sim: the simulator).

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Emit } from './row.ts';
import { buildProduct } from './server-process.ts';
import { type Backend, type BackendName, startBackend } from './store-backends.ts';
import { run as measureSimulator } from './sim-speed.ts';
import { measureHerd } from './store-herd.ts';
import { measureStart } from './store-start.ts';
import { measureWatch } from './store-watch.ts';
import { measureWrites } from './store-writes.ts';

const backends: readonly BackendName[] = ['sqlite', 'postgres', 'etcd'];

const parts: Readonly<Record<string, (backend: Backend, directory: string, emit: Emit) => Promise<void>>> = {
  writes: (backend, _directory, emit) => measureWrites(backend, emit),
  start: measureStart,
  watch: measureWatch,
  herd: measureHerd,
};

export async function run(emit: Emit): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-bench-store-'));
  try {
    buildProduct();
    const only = (process.env['BERTH_BENCH_STORE'] ?? '').split(',').filter((word) => word !== '');
    const wanted = <T extends string>(all: readonly T[]): readonly T[] =>
      only.some((word) => all.some((one) => one === word)) ? all.filter((one) => only.includes(one)) : all;
    for (const name of only.length === 1 && only[0] === 'sim' ? [] : wanted(backends)) {
      const backend = await startBackend(name, directory);
      try {
        for (const part of wanted(Object.keys(parts))) {
          process.stderr.write(`${name}: ${part}\n`);
          await parts[part]?.(backend, directory, emit);
        }
      } finally {
        await backend.stop();
      }
    }
    if (only.length === 0 || only.includes('sim')) await measureSimulator(emit);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
