// Memory of providers and allocations of other systems, compared with the same number of hosts and instances. Measures the heap of one control
// plane for each, in separate processes, after a forced garbage collection. The stores are written directly.

import { connect } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sha256 } from '../src/base/sha256.ts';
import { outsideGroup } from '../src/core/ledger/outside-group.ts';
import { keyOf, keys } from '../src/core/state/keys.ts';
import type { AnyRecord } from '../src/core/state/records.ts';
import type { Emit } from './row.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import { fillStore, storeRecords } from './store-fleet.ts';

const providers = 5_000;
const claims = 100_000;
const reporter = fileURLToPath(new URL('heap-reporter.mjs', import.meta.url));

/** The product must have been built. Takes 40 s. */
export async function runMemory(emit: Emit): Promise<void> {
  const peer = await heapOf(
    (url) => fillStore(url, { hosts: providers, instances: claims, projects: 10, events: 0, requestKeys: false }),
    '/v1/instances?limit=1',
  );
  const value = await heapOf(
    (url) => storeRecords(url, outsideRecords()),
    '/placement/allocation_candidates?resources=VCPU:1&limit=1',
  );
  emit({
    ...{ suite: 'placement', name: 'heap_5k_providers_100k_claims_mb', unit: 'MiB', better: 'lower', goal: 1.2 * peer },
    ...{ value, peer, ratio: value / peer },
  });
}

async function heapOf(fill: (url: string) => Promise<void>, path: string): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-placement-heap-'));
  try {
    await fill(`sqlite:${join(directory, 'berth.db')}`);
    const socket = join(directory, 'heap.sock');
    const server = await startServerProcess(directory, {
      env: { BERTH_BENCH_HEAP_SOCKET: socket },
      nodeArguments: ['--expose-gc', '--import', reporter],
    });
    try {
      await ask(server, path); // so that what serves it is there
      return Number(await said(socket)) / 2 ** 20;
    } finally {
      await server.close();
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function ask({ url, operatorToken }: ServerProcess, path: string): Promise<void> {
  const headers = { authorization: `Bearer ${operatorToken}`, 'openstack-api-version': 'placement 1.29' };
  const answer = await fetch(`${url}${path}`, { headers });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  await answer.arrayBuffer();
}

async function said(socket: string): Promise<string> {
  let text = '';
  for await (const bytes of connect(socket)) text += String(bytes);
  return text;
}

/** As the Placement API writes them: twenty claims on each provider. */
function* outsideRecords(): Generator<readonly [string, AnyRecord]> {
  const units = { reserved: 0, minUnit: 1, maxUnit: 2_147_483_647, stepSize: 1, allocationRatio: 1 };
  const inventories = {
    VCPU: { total: 256, ...units },
    MEMORY_MB: { total: 262_144, ...units },
    DISK_GB: { total: 4_000, ...units },
  };
  const amounts = { VCPU: 2, MEMORY_MB: 2_048, DISK_GB: 10 };
  const atMs = Date.now() - 3_600_000;
  const entry = (record: AnyRecord): [string, AnyRecord] => [keyOf(record), record];
  for (let i = 0; i < providers; i++) {
    const [id, name] = [uuidOf('provider', i), `compute-${i}`];
    yield entry({
      ...{ kind: 'provider', id, host: outsideGroup(id), parent: null, generation: 1 + claims / providers },
      ...{ inventories, traits: [], aggregates: [], outside: { name, createdAtMs: atMs, changedAtMs: atMs } },
    });
    yield entry({ kind: 'placementName', of: 'provider', name: sha256(name), createdAtMs: atMs });
  }
  for (let i = 0; i < claims; i++) {
    const [id, project] = [uuidOf('consumer', i), uuidOf('project', i % 10)];
    const provider = uuidOf('provider', i % providers);
    yield [
      keys.allocation(id, 1),
      {
        kind: 'allocation',
        consumer: { kind: 'outside', id, incarnation: 1, project, name: id },
        ...{ host: outsideGroup(provider), amounts: { [provider]: amounts }, driver: '' },
      },
    ];
    yield entry({
      ...{ kind: 'outsideConsumer', id, project, user: uuidOf('user', i % 10), type: 'INSTANCE' },
      ...{ generation: 1, changedAtMs: atMs },
    });
  }
}

function uuidOf(kind: string, i: number): string {
  const hex = sha256(`${kind} ${i}`);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
