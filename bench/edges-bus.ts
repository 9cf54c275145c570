// Row `event_lag_p99_ms`: from the decision whose commit holds an event to its arrival at a subscriber of a real NATS server, commit
// included, while tasks are created at a steady rate.

import { connect } from '@nats-io/transport-node';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../src/api/client/client.ts';
import { CloudEvent } from '../src/api/news/cloud-event.ts';
import { parse } from '../src/api/parse.ts';
import { startNats } from '../src/server/outbox/bus/nats/test-nats.ts';
import { type Emit, percentile } from './row.ts';
import { buildProduct, startServerProcess } from './server-process.ts';

const perSecond = 100;
const tasks = 1_000;
/** The first ones load the bus's library and connect. */
const warmUp = 100;

export async function measureBus(emit: Emit): Promise<void> {
  buildProduct();
  const nats = await startNats();
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-bus-'));
  const config = join(directory, 'server.json');
  await writeFile(config, JSON.stringify({ eventBus: [{ kind: 'nats', url: nats.url }] }));
  const server = await startServerProcess(join(directory, 'data'), { env: { BERTH_SERVER_CONFIG: config } });
  const connection = await connect({ servers: nats.url.slice('nats://'.length) });
  try {
    const lagsMs: number[] = [];
    const all = Promise.withResolvers<void>();
    connection.subscribe('berth.events.>', {
      callback(error, message) {
        if (error) return all.reject(error);
        const { time, data } = parse(CloudEvent, message.json());
        if (data.subject.kind !== 'task') return;
        lagsMs.push(Date.now() - Date.parse(time));
        if (lagsMs.length === warmUp + tasks) all.resolve();
      },
    });
    const client = createClient({
      fetch: (address, init) => fetch(address, init),
      url: server.url,
      token: server.operatorToken,
    });
    const startAt = performance.now();
    for (let i = 0; i < warmUp + tasks; i++) {
      const dueAt = startAt + (i * 1_000) / perSecond;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueAt - performance.now())));
      client
        .create('task', { metadata: { name: `t${i}` }, spec: { cpus: 1, memoryMiB: 64, ttlMs: 3_600_000 } })
        .catch(all.reject);
    }
    await all.promise;
    const value = percentile(lagsMs.slice(warmUp), 0.99);
    emit({ suite: 'edges', name: 'event_lag_p99_ms', value, unit: 'ms', better: 'lower', goal: 30, limit: 100 });
  } finally {
    await connection.close();
    await server.close();
    await nats.dispose();
    await rm(directory, { recursive: true, force: true });
  }
}
