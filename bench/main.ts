// Suite `main`: what one instance costs, from the request to the guest's greeting, and what an idle control plane holds.

import { execFile } from 'node:child_process';
import { fdatasync, openSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { write } from 'node:fs';
import { createClient, type FetchLike } from '../src/api/client/client.ts';
import { agentClientOf } from './agent-client.ts';
import { residentMb } from './process-memory.ts';
import { type Emit, median, percentile } from './row.ts';
import { buildProduct, program, type ServerProcess, startServerProcess } from './server-process.ts';
import { bootTiny } from './tiny-boot.ts';

const suite = 'main';
const createsPerSecond = 200;
const seconds = 10;
const fetchLike: FetchLike = (url, init) => fetch(url, init);

export async function run(emit: Emit): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'));
  try {
    buildProduct();
    const server = await startServerProcess(join(directory, 'server'));
    try {
      await idleMemory(server, emit);
      await creates(server, directory, emit);
      await commandLine(server, directory, emit);
    } finally {
      await server.close();
    }
    await bootTiny(directory, emit);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function idleMemory(server: ServerProcess, emit: Emit): Promise<void> {
  const client = createClient({ fetch: fetchLike, url: server.url, token: server.operatorToken });
  await client.list('instance');
  await new Promise((resolve) => setTimeout(resolve, 2_000)); // let it come to rest
  const value = await residentMb(server.pid);
  const bare = promisify(execFile)(process.execPath, ['-e', 'console.log(process.memoryUsage.rss() / 2 ** 20)']);
  const limit = Number((await bare).stdout);
  emit({
    suite,
    name: 'server_idle_rss_mb',
    value,
    unit: 'MiB',
    better: 'lower',
    goal: 110,
    limit,
    ratio: value / limit,
  });
}

/** Creates at a steady rate; each is timed to its durable 201, and from there to the agent that should start it. */
async function creates(server: ServerProcess, directory: string, emit: Emit): Promise<void> {
  const client = createClient({ fetch: fetchLike, url: server.url, token: server.operatorToken });
  await client.create('image', {
    metadata: { name: 'bench' },
    spec: { source: 'file:///nowhere', defaults: { cpus: 1, memoryMiB: 512 } },
  });
  const hosts: Awaited<ReturnType<typeof agentClientOf>>[] = [];
  for (let i = 0; i < 10; i++) hosts.push(await agentClientOf(server, `bench-${i}`));
  const count = createsPerSecond * seconds;
  const answeredAt = new Map<string, number>();
  const seenAt = new Map<string, number>();
  const stop = new AbortController();
  const allSeen = new Promise<void>((resolve) => {
    for (const host of hosts) {
      void host.watch(stop.signal, (instanceId) => {
        seenAt.set(instanceId, performance.now());
        if (seenAt.size === count) resolve();
      });
    }
  });
  const durable: number[] = [];
  const startedAt = performance.now();
  const pending: Promise<void>[] = [];
  for (let i = 0; i < count; i++) {
    const due = startedAt + (i * 1000) / createsPerSecond;
    while (performance.now() < due)
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    // Timed from when it was due, so that a stall of the load generator is not hidden (coordinated omission).
    pending.push(
      client.create('instance', { spec: { image: 'bench' } }).then((made) => {
        const now = performance.now();
        durable.push(now - due);
        answeredAt.set(made.metadata.id, now);
      }),
    );
  }
  await Promise.all(pending);
  await allSeen;
  stop.abort();
  const deliver = [...answeredAt].map(([id, at]) => Math.max(0, (seenAt.get(id) ?? Number.NaN) - at));
  const limit = await fsyncMs(directory);
  const p50 = median(durable);
  const p99 = percentile(durable, 0.99);
  emit({
    suite,
    name: 'create_durable_p50_ms',
    value: p50,
    unit: 'ms',
    better: 'lower',
    goal: 10,
    limit,
    ratio: p50 / limit,
  });
  emit({
    suite,
    name: 'create_durable_p99_ms',
    value: p99,
    unit: 'ms',
    better: 'lower',
    goal: 50,
    limit,
    ratio: p99 / limit,
  });
  emit({
    suite,
    name: 'deliver_p50_ms',
    value: median(deliver),
    unit: 'ms',
    better: 'lower',
    goal: 50,
    limit,
    ratio: median(deliver) / limit,
  });
}

/** Appending 512 bytes and syncing them, as the disk does it. */
async function fsyncMs(directory: string): Promise<number> {
  const file = openSync(join(directory, 'fsync'), 'a');
  const bytes = Buffer.alloc(512, 1);
  const times: number[] = [];
  for (let i = 0; i < 300; i++) {
    const at = performance.now();
    await promisify(write)(file, bytes);
    await promisify(fdatasync)(file);
    times.push(performance.now() - at);
  }
  return median(times);
}

/** `berth ps` as a whole process, against a bare start of the same Node. */
async function commandLine(server: ServerProcess, directory: string, emit: Emit): Promise<void> {
  const env = {
    ...process.env,
    BERTH_URL: server.url,
    BERTH_TOKEN: server.operatorToken,
    BERTH_CONFIG: join(directory, 'config.yaml'),
  };
  await writeFile(join(directory, 'empty.mjs'), '');
  const time = async (argv: string[]): Promise<number> => {
    const times: number[] = [];
    for (let i = 0; i < 11; i++) {
      const at = performance.now();
      await promisify(execFile)(process.execPath, argv, { env, maxBuffer: 1 << 26 });
      times.push(performance.now() - at);
    }
    return median(times);
  };
  const limit = await time([join(directory, 'empty.mjs')]);
  const value = await time([program, 'ps', '-l', 'none=here']);
  emit({ suite, name: 'cli_ps_ms', value, unit: 'ms', better: 'lower', goal: 300, limit, ratio: value / limit });
}
