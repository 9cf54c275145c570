// Suite `scale`: how large a fleet one control plane serves, per GB of memory, on each store; and how long a rolling upgrade of three servers leaves
// clients without an answer. `BERTH_BENCH_SCALE=sqlite,upgrade` measures only what it names.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Emit } from './row.ts';
import { measureCpu } from './scale-cpu.ts';
import { measureSize } from './scale-size.ts';
import { measureUpgrade } from './scale-upgrade.ts';
import { buildProduct } from './server-process.ts';
import { type BackendName, startBackend } from './store-backends.ts';

const backends: readonly BackendName[] = ['sqlite', 'postgres', 'etcd'];

export async function run(emit: Emit): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-bench-scale-'));
  const only = (process.env['BERTH_BENCH_SCALE'] ?? '').split(',').filter((word) => word !== '');
  const isWanted = (name: string): boolean => only.length === 0 || only.includes(name);
  try {
    if (backends.some(isWanted)) buildProduct();
    for (const name of backends.filter(isWanted)) {
      const backend = await startBackend(name, directory);
      try {
        await measureSize(backend, directory, emit);
        await measureCpu(backend, directory, emit);
      } finally {
        await backend.stop();
      }
    }
    if (isWanted('upgrade')) await measureUpgrade(directory, emit);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
