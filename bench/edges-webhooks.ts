// Rows `webhook_deliveries_per_s`, and what one receiver that hangs costs the others. Events wait while the webhooks are paused; then all
// are sent at once to ten receivers in this process.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../src/api/client/client.ts';
import { type Emit, percentile } from './row.ts';
import { buildProduct, startServerProcess } from './server-process.ts';

const receivers = 10;
const tasks = 400;
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

interface Round {
  readonly perSecond: number;
  /** Milliseconds from the start to a delivery, of the receivers that answer. */
  readonly delaysMs: readonly number[];
}

export async function measureWebhooks(emit: Emit): Promise<void> {
  buildProduct();
  const all = await deliver(0);
  const row = { suite: 'edges', better: 'higher' } as const;
  emit({ ...row, name: 'webhook_deliveries_per_s', value: all.perSecond, unit: '1/s', goal: 5_000, limit: 1_000 });
  const withHanging = await deliver(1);
  const value = percentile(withHanging.delaysMs, 0.99) / percentile(all.delaysMs, 0.99);
  emit({ suite: 'edges', name: 'webhook_hanging_p99_ratio', value, unit: 'ratio', better: 'lower', goal: 1.25 });
}

async function deliver(hanging: number): Promise<Round> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-edges-'));
  const env = { BERTH_SERVER_AUDIT: 'false', BERTH_SERVER_WEBHOOK_ALLOW: '127.0.0.1/32' };
  const server = await startServerProcess(directory, { env });
  const servers: Server[] = [];
  try {
    const { url, operatorToken: token } = server;
    const client = createClient({ fetch: (address, init) => fetch(address, init), url, token });
    await client.create('secret', {
      metadata: { name: 'hooks' },
      spec: { description: '', values: { current: secret } },
    });
    const delaysMs: number[] = [];
    let startedAt = 0;
    let wanted = Number.POSITIVE_INFINITY;
    let done = (): void => {};
    const finished = new Promise<void>((resolve) => (done = resolve));
    for (let i = 0; i < receivers; i++) {
      const receiver = createServer((request, response) => {
        request.resume();
        if (i < hanging) return; // and never answers
        request.once('end', () => {
          response.writeHead(204).end();
          delaysMs.push(performance.now() - startedAt);
          if (delaysMs.length === wanted) done();
        });
      }).listen(0, '127.0.0.1');
      await once(receiver, 'listening');
      servers.push(receiver);
      const to = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
      const spec = {
        url: to,
        secrets: [{ secret: 'hooks', key: 'current' }],
        events: ['berth.v1.task.Accepted'],
        paused: true,
      };
      await client.create('webhook', { metadata: { name: `to-${i}` }, spec });
    }
    const spec = { cpus: 1, memoryMiB: 64, ttlMs: 3_600_000 };
    await Promise.all(
      Array.from({ length: tasks }, (_, i) => client.create('task', { metadata: { name: `t${i}` }, spec })),
    );
    wanted = (receivers - hanging) * tasks;
    startedAt = performance.now();
    for (let i = 0; i < receivers; i++) {
      const { spec: paused } = await client.get('webhook', `to-${i}`);
      await client.replace('webhook', `to-${i}`, { spec: { ...paused, paused: false } });
    }
    await finished;
    return { perSecond: (wanted * 1_000) / (performance.now() - startedAt), delaysMs };
  } finally {
    for (const receiver of servers) {
      receiver.closeAllConnections();
      receiver.close();
    }
    await server.kill();
    await rm(directory, { recursive: true, force: true });
  }
}
