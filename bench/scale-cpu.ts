// CPU time of the control plane per heartbeat of a host, and per instance that is created and placed. CPU time rather than elapsed time, because
// the load generator runs on the same machine.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient, type FetchLike } from '../src/api/client/client.ts';
import { defaultPolicy } from '../src/core/state/context.ts';
import { testRegistration } from '../src/server/testing.ts';
import type { Emit } from './row.ts';
import { startServerProcess } from './server-process.ts';
import type { Backend } from './store-backends.ts';

const hosts = 400;
const heartbeats = 10; // of each
const creates = 2_000;
const atOnce = 32;
const ticksPerSecond = 100; // USER_HZ, on all of Linux
const fetchLike: FetchLike = (url, init) => fetch(url, init);

export async function measureCpu(backend: Backend, directory: string, emit: Emit): Promise<void> {
  const server = await startServerProcess(join(directory, `cpu${backend.suffix}`), {
    env: { BERTH_SERVER_STORE: backend.storeUrl('scale_cpu'), BERTH_SERVER_OFFLINE_AFTER_MS: '86400000' },
  });
  try {
    const agents = Array.from({ length: hosts }, (_, i) => {
      const client = createClient({ fetch: fetchLike, url: server.url, token: server.hostToken(`h${i}`) });
      return { api: client.agent(`h${i}`), name: `h${i}`, epoch: 0 };
    });
    const capacity = { VCPU: 64, MEMORY_MB: 262_144, DISK_GB: 4_000 };
    await each(agents, async (agent) => {
      const session = await agent.api.register(testRegistration({ machineId: agent.name, capacity }));
      agent.epoch = session.epoch;
    });
    const client = createClient({ fetch: fetchLike, url: server.url, token: server.operatorToken });
    const spec = { source: 'file:///nowhere', defaults: { cpus: 1, memoryMiB: 512 } };
    await client.create('image', { metadata: { name: 'bench' }, spec });

    const row = { suite: 'scale', better: 'higher' } as const;
    const beats = Array.from({ length: heartbeats }, () => agents).flat();
    const beatMs = await cpuMsOf(server.pid, () => each(beats, ({ api, epoch }) => api.heartbeat({ epoch })));
    const value = defaultPolicy.heartbeatMs / (beatMs / beats.length);
    emit({ ...row, name: `hosts_per_core${backend.suffix}`, value, unit: 'hosts/core', goal: 10_000 });

    const names = Array.from({ length: creates }, (_, i) => `web-${i}`);
    const createMs = await cpuMsOf(server.pid, () =>
      each(names, (name) => client.create('instance', { metadata: { name }, spec: { image: 'bench' } })),
    );
    const perSecond = 1_000 / (createMs / creates);
    emit({ ...row, name: `creates_per_core_s${backend.suffix}`, value: perSecond, unit: '1/s', goal: 500 });
  } finally {
    await server.close();
  }
}

/** Some at a time. */
async function each<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = items.values();
  const worker = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function cpuMsOf(pid: number, work: () => Promise<void>): Promise<number> {
  const before = await cpuMs(pid);
  await work();
  return (await cpuMs(pid)) - before;
}

/** Of all its threads, in user and kernel. */
async function cpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond;
}
