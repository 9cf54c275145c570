// Row `lost_host_replaced_s`: 1,000 hosts with 10,000 instances; one host with 50 is lost: from when it is down until all 50 are bound again.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../src/api/client/client.ts';
import { agentClientOf } from './agent-client.ts';
import type { Emit } from './row.ts';
import { buildProduct, startServerProcess } from './server-process.ts';

const hosts = 1_000;
const instances = 10_000;
const onLostHost = 50;
const batch = 1_000;
const heartbeatMs = 5_000;
/** The first heartbeats of 1,000 hosts come while the fleet is still being made. */
const offlineAfterMs = 90_000;

export async function measureLostHost(emit: Emit): Promise<void> {
  buildProduct();
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-lost-'));
  const server = await startServerProcess(directory, {
    env: {
      BERTH_SERVER_OFFLINE_AFTER_MS: String(offlineAfterMs),
      BERTH_SERVER_HOST_DOWN_AFTER_MS: String(offlineAfterMs + 2_000),
    },
  });
  const over = new AbortController();
  try {
    const { url, operatorToken: token } = server;
    const client = createClient({ fetch: (address, init) => fetch(address, init), url, token });
    await client.create('image', { metadata: { name: 'bench' }, spec: { source: 'file:///nowhere' } });
    const make = (from: number, count: number) =>
      client.createInstances(
        Array.from({ length: count }, (_, i) => ({
          metadata: { name: `i-${from + i}` },
          spec: { image: 'bench', cpus: 1, memoryMiB: 64, onHostLoss: 'replace' as const },
        })),
      );
    // The lost host is the first: it gets its instances while there is no other.
    await agentClientOf(server, 'bench-lost');
    await make(0, onLostHost);
    await client.replace('host', 'bench-lost', { metadata: {}, spec: { paused: true } });
    const fleet: Awaited<ReturnType<typeof agentClientOf>>[] = [];
    const beat = setInterval(() => {
      for (const host of fleet) host.heartbeat().catch(() => {});
    }, heartbeatMs);
    over.signal.addEventListener('abort', () => clearInterval(beat), { once: true });
    for (let i = 1; i < hosts; i++) fleet.push(await agentClientOf(server, `bench-${i}`));
    for (let made = onLostHost; made < instances; made += batch) await make(made, Math.min(batch, instances - made));
    emit({
      suite: 'lifecycle',
      name: 'lost_host_replaced_s',
      value: await replacedWithin(client, over.signal),
      unit: 's',
      better: 'lower',
      goal: 1,
      limit: 5,
    });
  } finally {
    over.abort();
    await server.close();
    await rm(directory, { recursive: true, force: true });
  }
}

/** From when the server decides that the host is down until a client has seen all of them bound. */
async function replacedWithin(client: ReturnType<typeof createClient>, signal: AbortSignal): Promise<number> {
  const fromOf = ({ revision, epoch }: { revision: number; epoch?: string }) => ({
    revision,
    ...(epoch === undefined ? {} : { epoch }),
  });
  const [lists, hostLists] = await Promise.all([client.list('instance'), client.list('host')]);
  const bound = new Set<string>();
  const all = (async () => {
    for await (const change of client.watch('instance', fromOf(lists), signal)) {
      if (change.type !== 'put') continue;
      const { host, replaced } = change.resource.status;
      if (replaced?.host === 'bench-lost' && host !== undefined) bound.add(change.resource.metadata.id);
      if (bound.size === onLostHost) return Date.now();
    }
    throw new Error('the watch ended');
  })();
  for await (const change of client.watch('host', fromOf(hostLists), signal)) {
    if (change.type !== 'put' || change.resource.status.down === undefined) continue;
    return ((await all) - change.resource.status.down.atMs) / 1_000;
  }
  throw new Error('the watch ended');
}
