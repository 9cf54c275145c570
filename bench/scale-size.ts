// Memory of the control plane per host and per instance: the memory of its process on a store with many records, minus that on a store with
// fewer. All records are kept in memory, so memory limits the size of a fleet.

import { join } from 'node:path';
import { residentMb } from './process-memory.ts';
import { type Emit, median } from './row.ts';
import { startServerProcess } from './server-process.ts';
import type { Backend } from './store-backends.ts';
import { fillStore, type FleetSize } from './store-fleet.ts';

const few: FleetSize = { hosts: 100, instances: 100, projects: 10, events: 0 };
const manyHosts: FleetSize = { ...few, hosts: 20_100 };
const manyInstances: FleetSize = { ...few, hosts: 1_100, instances: 50_100, projects: 100 };
const starts = 3;
const dayMs = 86_400_000;

export async function measureSize(backend: Backend, directory: string, emit: Emit): Promise<void> {
  const heldBy = async (name: string, size: FleetSize): Promise<number> => {
    const url = backend.storeUrl(name);
    await fillStore(url, size);
    const held: number[] = [];
    for (let i = 0; i < starts; i++) {
      const server = await startServerProcess(join(directory, `${name}${backend.suffix}`), {
        // The hosts are only records, and say nothing.
        env: { BERTH_SERVER_STORE: url, BERTH_SERVER_OFFLINE_AFTER_MS: String(dayMs) },
      });
      try {
        const ready = await fetch(`${server.url}/readyz`);
        if (ready.status !== 200) throw new Error(`/readyz answered ${ready.status}`);
        held.push(await residentMb(server.pid));
      } finally {
        await server.close();
      }
    }
    process.stderr.write(`  ${name}${backend.suffix}: ${median(held).toFixed(0)} MiB\n`);
    return median(held);
  };
  const base = await heldBy('scale_few', few);
  const perHost = ((await heldBy('scale_hosts', manyHosts)) - base) / (manyHosts.hosts - few.hosts);
  const ofInstances = (await heldBy('scale_instances', manyInstances)) - base;
  const perInstance =
    (ofInstances - perHost * (manyInstances.hosts - few.hosts)) / (manyInstances.instances - few.instances);
  const row = { suite: 'scale', better: 'higher' } as const;
  emit({ ...row, name: `hosts_per_gb${backend.suffix}`, value: 1024 / perHost, unit: 'hosts/GiB', goal: 100_000 });
  emit({
    ...row,
    name: `instances_per_gb${backend.suffix}`,
    value: 1024 / perInstance,
    unit: 'instances/GiB',
    goal: 200_000,
  });
}
