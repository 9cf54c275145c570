import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { testSpec } from '../qemu/test-host.ts';
import { type GuestRecord, writeGuestRecord } from './guest-record.ts';
import { newRecord } from './records.ts';
import { placedGuests } from './placed-guests.ts';

const network = { kind: 'nat', tap: 'bt1', macAddress: '02:00:00:00:00:01', address: '10.77.0.5' } as const;
let base: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'berth-placed-'));
});
afterEach(() => rm(base, { recursive: true }));

async function write(root: string, number: number, change: Partial<GuestRecord>): Promise<string> {
  const instanceId = `inst_${'0'.repeat(25)}${number}`;
  const directory = join(base, root, instanceId);
  await mkdir(directory, { recursive: true });
  await writeGuestRecord(directory, { ...newRecord(testSpec({ instanceId }), 'a uuid'), network, ...change });
  return instanceId;
}

it('finds the guests of all drivers that may run, or are to have their place again', async () => {
  const whole = await write('qemu', 1, { created: true, state: 'stopped' });
  const starting = await write('libvirt', 2, { launching: true });
  const found = await placedGuests([join(base, 'qemu'), join(base, 'libvirt'), join(base, 'nothing')]);
  expect(found).toEqual([
    { instanceId: whole, directory: join(base, 'qemu', whole), network },
    { instanceId: starting, directory: join(base, 'libvirt', starting), network },
  ]);
});

it('finds a guest by the record before the last change where the current one is damaged', async () => {
  const instanceId = await write('qemu', 1, { created: true, state: 'preparing' });
  await write('qemu', 1, { created: true, state: 'running' });
  await writeFile(join(base, 'qemu', instanceId, 'guest.json'), '{');
  expect(await placedGuests([join(base, 'qemu')])).toMatchObject([{ instanceId, network }]);
});

it('finds none that gave its place back, has none, or cannot be read', async () => {
  await write('qemu', 1, { state: 'failed', launching: true });
  await write('qemu', 2, { state: 'preparing' });
  await write('qemu', 3, { created: true, network: undefined });
  const damaged = await write('qemu', 4, { created: true });
  await writeFile(join(base, 'qemu', damaged, 'guest.json'), '{');
  await mkdir(join(base, 'qemu', 'something-else'));
  expect(await placedGuests([join(base, 'qemu')])).toEqual([]);
});
