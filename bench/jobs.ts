// Suite `jobs`: jobs in real guests, and messages of a real broker that become jobs. `npm run bench -- jobs [--json]`; BERTH_BENCH_JOBS=intake,live measures only what it names.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { measureLines, measureLive, measureOverhead } from './jobs-guest.ts';
import { measureIntake } from './jobs-intake.ts';
import type { Emit } from './row.ts';

const parts: Readonly<Record<string, (directory: string, emit: Emit) => Promise<void>>> = {
  overhead: measureOverhead,
  lines: measureLines,
  live: measureLive,
  intake: measureIntake,
};

export async function run(emit: Emit): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bj-'));
  try {
    const only = (process.env['BERTH_BENCH_JOBS'] ?? '').split(',').filter((word) => word !== '');
    for (const [name, measure] of Object.entries(parts)) {
      if (only.length > 0 && !only.includes(name)) continue;
      process.stderr.write(`jobs: ${name}\n`);
      await measure(directory, emit);
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
