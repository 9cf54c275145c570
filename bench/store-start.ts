// A control plane that starts on a store of 100,000 placed instances: from the start of its process until it says that it is ready and
// has answered its first create, with a place. What it holds then is measured at that moment. Node's compile cache is warm, as it is on
// any start but the first. The limit is what no program of one thread does without: reading every entry, and parsing its JSON.

import { join } from 'node:path';
import { createClient, type FetchLike } from '../src/api/client/client.ts';
import { allPrefixes } from '../src/core/state/keys.ts';
import { openStore } from '../src/store/open.ts';
import { pagesOf } from '../src/store/pages.ts';
import { type Emit, median } from './row.ts';
import { residentMb } from './process-memory.ts';
import type { Backend } from './store-backends.ts';
import { fillStore, fleetImage, type FleetSize } from './store-fleet.ts';
import { startServerProcess } from './server-process.ts';

const suite = 'store';
const size: FleetSize = { hosts: 2_000, instances: 100_000, projects: 100, events: 10_000 };
/** The first after such a filling is the slowest; a median of five leaves that one out. */
const starts = 5;
const dayMs = 86_400_000;
const fetchLike: FetchLike = (url, init) => fetch(url, init);

export interface StartOptions {
  readonly nodeArguments?: readonly string[];
}

export async function measureStart(
  backend: Backend,
  directory: string,
  emit: Emit,
  { nodeArguments = [] }: StartOptions = {},
): Promise<void> {
  const url = backend.storeUrl('start');
  process.stderr.write(`  filling a store with ${size.instances} instances …\n`);
  await fillStore(url, size);
  const measured: { seconds: number; rssMb: number }[] = [];
  for (let i = 0; i < starts; i++) {
    const startedAt = performance.now();
    const server = await startServerProcess(join(directory, `start${backend.suffix}`), {
      // The hosts are only records, and say nothing.
      env: { BERTH_SERVER_STORE: url, BERTH_SERVER_OFFLINE_AFTER_MS: String(dayMs) },
      nodeArguments,
    });
    try {
      const ready = await fetch(`${server.url}/readyz`);
      if (ready.status !== 200) throw new Error(`/readyz answered ${ready.status}`);
      const client = createClient({ fetch: fetchLike, url: server.url, token: server.operatorToken });
      const made = await client.create('instance', { spec: { image: fleetImage } });
      const seconds = (performance.now() - startedAt) / 1000;
      if (made.status.host === undefined) throw new Error('the first instance was answered without a place');
      measured.push({ seconds, rssMb: await residentMb(server.pid) });
      process.stderr.write(`  start ${i + 1}: ${seconds.toFixed(2)} s, ${measured.at(-1)?.rssMb.toFixed(0)} MiB\n`);
    } finally {
      await server.close();
    }
  }
  const row = { suite, better: 'lower' } as const;
  const value = median(measured.map(({ seconds }) => seconds));
  const limit = await readAndParse(url);
  process.stderr.write(`  every entry read and parsed, and no more: ${limit.toFixed(2)} s\n`);
  emit({ ...row, name: `start_100k_s${backend.suffix}`, value, unit: 's', goal: 5, limit, ratio: value / limit });
  emit({
    ...row,
    name: `start_100k_rss_mb${backend.suffix}`,
    value: median(measured.map(({ rssMb }) => rssMb)),
    unit: 'MiB',
    goal: 600,
  });
}

/** The median of as many readings as there are starts, in seconds. */
async function readAndParse(url: string): Promise<number> {
  const seconds: number[] = [];
  const decoder = new TextDecoder();
  for (let i = 0; i < starts; i++) {
    const startedAt = performance.now();
    const store = await openStore(url);
    const parsed: unknown[] = [];
    for await (const { entries } of pagesOf(store, { prefixes: allPrefixes }))
      for (const { value } of entries) parsed.push(JSON.parse(decoder.decode(value)));
    seconds.push((performance.now() - startedAt) / 1000);
    await store.close();
    if (parsed.length < size.instances) throw new Error(`${parsed.length} entries were read`);
  }
  return median(seconds);
}
