// Suite `guests`: what Berth adds to an engine's own time when a guest starts, how it takes up the guests of an agent that was restarted, and
// how fast one gets into a guest. `npm run bench -- guests [--json]`; BERTH_BENCH_GUESTS=start,streams measures only what it names.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decompress } from './decompress.ts';
import { measureAdoption } from './guest-adoption.ts';
import { measureStarts } from './guest-start.ts';
import { measureStreams } from './guest-streams.ts';
import type { Emit } from './row.ts';
import { buildProduct } from './server-process.ts';

const parts: Readonly<Record<string, (directory: string, emit: Emit) => Promise<void>>> = {
  start: measureStarts,
  adoption: measureAdoption,
  streams: measureStreams,
  decompress,
};

export async function run(emit: Emit): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bg-')); // short: sockets of libvirt are below it
  try {
    buildProduct();
    const only = (process.env['BERTH_BENCH_GUESTS'] ?? '').split(',').filter((word) => word !== '');
    for (const [name, measure] of Object.entries(parts)) {
      if (only.length > 0 && !only.includes(name)) continue;
      process.stderr.write(`guests: ${name}\n`);
      await measure(directory, emit);
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
