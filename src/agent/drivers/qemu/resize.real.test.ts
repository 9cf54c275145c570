import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { gibibyte } from '../../../base/bytes.ts';
import { qcow2HeadBytes, virtualSizeBytes } from '../../images/qcow2-header.ts';
import { untilGuest } from '../conformance.ts';
import type { Driver, GuestSize } from '../driver.ts';
import { makeQemuTestHost, type QemuTestHost, testSpec } from './test-host.ts';

const never = new AbortController().signal;
const spec = testSpec();
const id = spec.instanceId;
let host: QemuTestHost;
let driver: Driver;

beforeEach(async () => {
  host = await makeQemuTestHost();
  driver = host.open();
  await driver.recover();
});
afterEach(async () => {
  await driver.remove(id);
  await driver.close();
  await host.dispose();
});

const resize = async (size: Partial<GuestSize> = {}): Promise<void> =>
  driver.resize?.(id, { cpus: 2, memoryMiB: 48, diskGiB: 1, order: 1, ...size });
const guest = () => driver.guests().find(({ instanceId }) => instanceId === id);
async function diskBytes(): Promise<number> {
  const file = await open(join(host.directory, id, 'disk.qcow2'));
  const head = Buffer.alloc(qcow2HeadBytes);
  await file.read(head, 0, qcow2HeadBytes, 0);
  await file.close();
  return virtualSizeBytes(head);
}
async function booted(text: string): Promise<void> {
  await untilGuest(driver, id, (each) => each?.ready === true);
  const { data } = await driver.readLog(id, 0, 65_536);
  expect(Buffer.from(data).toString()).toContain(text);
}

it('gives a stopped guest other CPUs, memory and a larger disk, which keeps its data', async () => {
  await driver.create(spec, never);
  await booted('boot 0');
  await expect(resize()).rejects.toMatchObject({ code: 'NotPossible' });
  await driver.stop(id, 0);
  await resize();
  expect(await diskBytes()).toBe(gibibyte);
  expect(guest()).toMatchObject({ state: 'stopped', resized: 1 });
  await resize({ diskGiB: 0, memoryMiB: 64, order: 2 }); // a disk never shrinks
  expect(await diskBytes()).toBe(gibibyte);
  await driver.start(id);
  await booted('boot 1'); // which the guest counts on its disk
  const found = await host.process(id);
  const words = (await readFile(`/proc/${found?.pid}/cmdline`, 'utf8')).split('\0');
  expect(words).toContain('size=64M');
  expect(words.join(' ')).toContain('cpus=2');
});

it('is known to the next agent', async () => {
  await driver.create(spec, never);
  await driver.stop(id, 0);
  await resize({ order: 7 });
  await driver.close();
  driver = host.open();
  await driver.recover();
  expect(guest()?.resized).toBe(7);
});
