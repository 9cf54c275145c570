// Suite `access`: what it costs that every request is asked whether it may, and what one project's flood costs another.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { auditOverhead } from './access-audit.ts';
import { noisyNeighbour } from './access-neighbours.ts';
import { authOverhead, listFiltered } from './access-rights.ts';
import type { Emit } from './row.ts';
import { buildProduct } from './server-process.ts';

export async function run(emit: Emit): Promise<void> {
  buildProduct();
  for (const measure of [noisyNeighbour, auditOverhead, authOverhead, listFiltered]) {
    const directory = await mkdtemp(join(tmpdir(), 'berth-bench-access-'));
    try {
      await measure(directory, emit);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }
}
