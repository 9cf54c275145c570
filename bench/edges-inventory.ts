// Row `inventory_50k_s`: from when a source is asked for 50,000 nodes of which 1 % changed until the last of them is applied, in a real
// server with its usual store.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../src/api/client/client.ts';
import { type Emit, median } from './row.ts';
import { startServerProcess } from './server-process.ts';

const nodes = 50_000;
const changedEach = 100;
const rounds = 5;
const lastChanged = `metal-${nodes - changedEach}`;

const listOf = (round: number): string =>
  JSON.stringify(
    Array.from({ length: nodes }, (_, i) => ({
      ...{ name: `metal-${i}`, cpu: 32, memory: 131_072, storage: 1_920, pool: 'metal', model: 'bench' },
      usage_cpu: i % changedEach === 0 ? round : 4,
      usage_mem: 8_192,
      ip: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
    })),
  );

export async function measureInventory(emit: Emit): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-inventory-'));
  const source = { body: listOf(0), round: 0, askedAtMs: 0, askedRound: -1 };
  const http = createServer((_request, response) => {
    if (source.askedRound < source.round) {
      source.askedRound = source.round;
      source.askedAtMs = performance.now();
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(source.body);
  });
  await once(http.listen(0, '127.0.0.1'), 'listening');
  const address = http.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const server = await startServerProcess(join(directory, 'server'), {});
  try {
    const fetcher = (url: string, init: object) => fetch(url, init);
    const client = createClient({ fetch: fetcher, url: server.url, token: server.operatorToken });
    const usage = async (): Promise<number> =>
      client.get('host', lastChanged).then(
        ({ status }) => status.outside?.usage['VCPU'] ?? -1,
        () => -1,
      );
    const spec = { source: { kind: 'http', url: `http://127.0.0.1:${port}/nodes` }, intervalMs: 1_000 } as const;
    await client.create('inventory', { metadata: { name: 'bench' }, spec });
    while ((await client.get('inventory', 'bench')).status.state !== 'Fresh') await sleep(100);
    process.stderr.write(`  first list: ${((performance.now() - source.askedAtMs) / 1000).toFixed(1)} s\n`);
    const seconds: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      source.body = listOf(round);
      source.round = round;
      while ((await usage()) !== round) await sleep(10);
      seconds.push((performance.now() - source.askedAtMs) / 1000);
      process.stderr.write(`  ${seconds.at(-1)?.toFixed(2)} s\n`);
    }
    emit({ suite: 'edges', name: 'inventory_50k_s', value: median(seconds), unit: 's', better: 'lower', goal: 1 });
  } finally {
    await server.close();
    http.close();
    http.closeAllConnections();
    await rm(directory, { recursive: true, force: true });
  }
}
