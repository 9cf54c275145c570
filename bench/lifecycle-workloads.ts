// Rows `scale_5000_s`: from the request for 5,000 replicas until all are bound, on 1,000 hosts; and `reconcile_100k_s`: a full pass over
// 100,000 healthy copies, which writes nothing.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../src/api/client/client.ts';
import { workload } from '../src/core/controllers/workloads/workload.ts';
import {
  addRecord,
  testCache,
  testContext,
  testGuest,
  testHost,
  testInstance,
  testWorkload,
} from '../src/core/testing.ts';
import { agentClientOf } from './agent-client.ts';
import { type Emit, median } from './row.ts';
import { buildProduct, startServerProcess } from './server-process.ts';

const hosts = 1_000;
const replicas = 5_000;

export async function measureScale(emit: Emit): Promise<void> {
  buildProduct();
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-lifecycle-'));
  const server = await startServerProcess(directory, { env: { BERTH_SERVER_OFFLINE_AFTER_MS: '86400000' } });
  try {
    const { url, operatorToken: token } = server;
    const client = createClient({ fetch: (address, init) => fetch(address, init), url, token });
    for (let i = 0; i < hosts; i++) await agentClientOf(server, `bench-${i}`);
    await client.create('image', { metadata: { name: 'bench' }, spec: { source: 'file:///nowhere' } });
    const { spec } = testWorkload('', { replicas: 0 });
    const template = { labels: {}, spec: { ...spec.template.spec, image: 'bench', cpus: 1, memoryMiB: 64 } };
    await client.create('workload', { metadata: { name: 'web' }, spec: { ...spec, template } });
    const { revision, epoch } = await client.list('instance');
    const bound = new Set<string>();
    const over = new AbortController();
    const startedAt = performance.now();
    const all = (async () => {
      const from = { revision, ...(epoch === undefined ? {} : { epoch }) };
      for await (const change of client.watch('instance', from, over.signal)) {
        if (change.type !== 'put' || change.resource.status.host === undefined) continue;
        bound.add(change.resource.metadata.id);
        if (bound.size === replicas) return;
      }
    })();
    await client.scaleWorkload('web', { replicas });
    await all;
    const value = (performance.now() - startedAt) / 1_000;
    over.abort();
    emit({ suite: 'lifecycle', name: 'scale_5000_s', value, unit: 's', better: 'lower', goal: 2, limit: 5 });
  } finally {
    await server.close();
    await rm(directory, { recursive: true, force: true });
  }
}

const workloads = 100;
const copiesOfEach = 1_000;
const rounds = 5;

export function measureReconcile(emit: Emit): void {
  const cache = testCache(Array.from({ length: hosts }, (_, i) => testHost(`h${i}`)).flat());
  const keys: string[] = [];
  for (let w = 0; w < workloads; w++) {
    const name = `web-${w}`;
    const made = testWorkload(name, { replicas: copiesOfEach });
    addRecord(cache, made);
    keys.push(`workloads/default/${name}`);
    for (let i = 0; i < copiesOfEach; i++) {
      const owner = { name, id: made.metadata.id, revision: 1, ordinal: i };
      const status = { phase: 'Running', host: `h${i}`, guest: testGuest(), readyAtMs: 0, workload: owner } as const;
      addRecord(cache, testInstance(`${name}-${i}`, {}, status));
    }
  }
  const settled = keys.flatMap((key) => workload.reconcile(cache, key, testContext()).changes);
  for (const { value } of settled) if (value?.kind === 'workload') addRecord(cache, value);
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now();
    const written = keys.reduce((sum, key) => sum + workload.reconcile(cache, key, testContext()).changes.length, 0);
    if (written > 0) throw new Error(`${written} changes were written`);
    times.push((performance.now() - startedAt) / 1_000);
  }
  emit({
    suite: 'lifecycle',
    name: 'reconcile_100k_s',
    value: median(times),
    unit: 's',
    better: 'lower',
    goal: 0.3,
    limit: 1,
  });
}
