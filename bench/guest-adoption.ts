// An agent is killed and started again under 20 guests: from the start of its process until it has found them all and is registered. None of
// them may have been started again.

import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bootDisk } from '../src/agent/drivers/qemu/boot-sector.ts';
import { startFleet } from '../test/processes.ts';
import { type Emit, median } from './row.ts';
import { program } from './server-process.ts';

const guests = 20;
const restarts = 3;

export async function measureAdoption(directory: string, emit: Emit): Promise<void> {
  const agent = { capacity: { VCPU: 64, MEMORY_MB: 65_536, DISK_GB: 1000 } };
  const fleet = await startFleet(join(directory, 'adoption'), { program, agent });
  try {
    // Machines that boot at once and then rest: twenty systems that start up would be what is measured.
    const image = join(directory, 'adoption', 'rests.raw');
    await mkdir(join(directory, 'adoption'), { recursive: true });
    await writeFile(image, bootDisk([{ do: 'print', text: 'berth: ready\n' }, { do: 'halt' }]));
    await fleet.client.create('image', {
      metadata: { name: 'rests' },
      spec: { source: `file://${image}`, format: 'raw' },
    });
    const names = Array.from({ length: guests }, (_, i) => `guest-${i}`);
    for (const name of names) {
      await fleet.client.create('instance', {
        metadata: { name },
        spec: { image: 'rests', cpus: 1, memoryMiB: 64, stopGraceMs: 0 },
      });
    }
    for (const name of names) await fleet.until(name, ({ status }) => status.guest?.ready === true, 300_000);
    const before = qemus();
    const times: number[] = [];
    for (let i = 0; i < restarts; i++) {
      await fleet.killAgent();
      const startedAt = performance.now();
      await fleet.restartAgent();
      times.push(performance.now() - startedAt);
    }
    for (const name of names) {
      const { status } = await fleet.until(name, (instance) => instance.status.phase === 'Running');
      if (status.incarnation !== 1 || status.restartCount !== 0) throw new Error(`${name} was started again`);
    }
    if (qemus().join() !== before.join()) throw new Error('a guest was started again');
    emit({ suite: 'guests', name: 'adopt20_s', value: median(times) / 1000, unit: 's', better: 'lower', goal: 2 });
    for (const name of names) await fleet.client.delete('instance', name);
    for (const name of names) await fleet.gone(name);
  } finally {
    await fleet.stop();
  }
}

/** The processes of all guests, as the kernel knows them. */
function qemus(): string[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('qemu-system-x86_64');
      } catch {
        return false; // it has gone
      }
    })
    .sort();
}
