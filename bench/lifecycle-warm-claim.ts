// Row `warm_claim_ratio`: from the claim of a tiny VM of a warm pool until it is usable, over the same for a cold start, through the whole
// product, in the same run. Usable: its agent reports it ready, and the caller has seen that.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Instance } from '../src/api/resources/instance.ts';
import { type Fleet, startFleet } from '../test/processes.ts';
import { tinyImage } from '../test/tiny-image.ts';
import { type Emit, median } from './row.ts';
import { buildProduct, program } from './server-process.ts';

const rounds = 5;
const spec = { image: 'tiny', cpus: 1, memoryMiB: 128, stopGraceMs: 0 };

export async function measureWarmClaim(emit: Emit): Promise<void> {
  buildProduct();
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-warm-'));
  const fleet = await startFleet(directory, { program });
  try {
    const { client } = fleet;
    await client.create('image', { metadata: { name: 'tiny' }, spec: (await tinyImage()).spec });
    const template = { labels: {}, spec: spec as Instance['spec'] }; // the server adds the defaults
    await client.create('warmPool', { metadata: { name: 'warm' }, spec: { template, size: 1 } });
    const [warm, cold]: [number[], number[]] = [[], []];
    for (let i = 0; i < rounds; i++) {
      await filled(fleet);
      warm.push(await measured(fleet, () => client.claimWarmGuest('warm', { spec: { coldStart: false } })));
      await filled(fleet); // so that no guest boots beside the cold start
      cold.push(await measured(fleet, () => client.create('instance', { spec })));
    }
    const [value, whole] = [median(warm), median(cold)];
    process.stderr.write(`  claim ${value.toFixed(1)} ms, cold start ${whole.toFixed(0)} ms\n`);
    emit({
      suite: 'lifecycle',
      name: 'warm_claim_ratio',
      value: value / whole,
      unit: 'of a cold start',
      better: 'lower',
      goal: 0.05,
      limit: 0.25,
    });
    await client.delete('warmPool', 'warm');
  } finally {
    await fleet.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Milliseconds from the request until the guest is usable; then it is removed. */
async function measured({ client, until, gone }: Fleet, ask: () => Promise<Instance>): Promise<number> {
  const startedAt = performance.now();
  const { metadata, status } = await ask();
  if (status.guest?.ready !== true) await until(metadata.name, (instance) => instance.status.guest?.ready === true);
  const took = performance.now() - startedAt;
  await client.delete('instance', metadata.name);
  await gone(metadata.name);
  return took;
}

async function filled({ client }: Fleet): Promise<void> {
  const { revision, items } = await client.list('warmPool');
  if (items.every(({ status }) => status.ready === 1)) return;
  for await (const change of client.watch('warmPool', { revision }, AbortSignal.timeout(60_000)))
    if (change.type === 'put' && change.resource.status.ready === 1) return;
}
