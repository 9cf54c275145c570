import { readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { untilGuest } from '../../conformance.ts';
import type { Driver, GuestSuspension } from '../../driver.ts';
import { makeQemuTestHost, type QemuTestHost, testSpec } from '../test-host.ts';

const never = new AbortController().signal;
const volumeId = `vol_${'0'.repeat(26)}`;
const plain = testSpec();
const id = plain.instanceId;
let host: QemuTestHost;
let driver: Driver;

beforeEach(async () => {
  host = await makeQemuTestHost();
  driver = host.open();
  await driver.recover();
  const volume = await host.guestVolumes.make(volumeId);
  // As one that was attached while it ran, it is not where QEMU would put it.
  await driver.create({ ...plain, volumes: [{ ...volume, slot: 20 }] }, never);
  await untilGuest(driver, id, (each) => each?.ready === true);
});
afterEach(async () => {
  await driver.remove(id);
  await driver.close();
  await host.dispose();
});

const guest = () => driver.guests().find(({ instanceId }) => instanceId === id);
const hands = (): Required<GuestSuspension> => {
  const { suspend, resume, save } = driver.suspension ?? {};
  if (!suspend || !resume || !save) throw new Error('its guests cannot be suspended to disk');
  return { suspend, resume, save };
};
async function restart(): Promise<void> {
  await driver.close();
  driver = host.open();
  await driver.recover();
}
const memory = (): string => join(host.directory, id, 'memory');
const kept = async (): Promise<boolean> => (await readdir(join(host.directory, id))).includes('memory');
/** Only a guest that runs hears its power button. */
async function runsOn(): Promise<void> {
  expect(guest()).toMatchObject({ state: 'running', ready: true, volumes: [volumeId] });
  expect([await host.runningCopies(id), await kept()]).toEqual([1, false]);
  const { data } = await driver.readLog(id, 0, 1 << 20);
  expect(Buffer.from(data).toString()).not.toContain('boot 1');
  await driver.stop(id, 30_000);
  expect(guest()?.reason).toBeUndefined();
}

it('keeps its memory on disk, with nothing that runs, over a restart of its agent, and goes on', async () => {
  for (const _ of [1, 2]) await hands().save(id, never);
  expect(guest()).toMatchObject({ state: 'suspended', saved: true, volumes: [volumeId] });
  expect(await host.runningCopies(id)).toBe(0);
  expect((await stat(memory())).mode & 0o777).toBe(0o600);
  await restart();
  expect(guest()).toMatchObject({ state: 'suspended', saved: true });
  await hands().suspend(id);
  await expect(driver.volumes?.set(id, [], never)).rejects.toMatchObject({ code: 'NotPossible' });
  await expect(driver.resize?.(id, { cpus: 2, memoryMiB: 64, diskGiB: 0, order: 1 })).rejects.toMatchObject({
    code: 'NotPossible',
  });
  await hands().resume(id);
  expect(guest()?.saved).toBeUndefined();
  await runsOn();
});

it('is saved where it was suspended in memory, and powers off by itself when it is stopped', async () => {
  await hands().suspend(id);
  await hands().save(id, never);
  await driver.stop(id, 30_000);
  expect(guest()).toMatchObject({ state: 'stopped' });
  expect([guest()?.reason, guest()?.saved, await kept()]).toEqual([undefined, undefined, false]);
});

it('loses its memory when it is stopped by force, and its file when it is removed', async () => {
  await hands().save(id, never);
  await driver.stop(id, 0);
  expect([guest()?.state, await kept()]).toEqual(['stopped', false]);
  await driver.start(id);
  await untilGuest(driver, id, (each) => each?.ready === true);
  await hands().save(id, never);
  await driver.remove(id);
  expect(await host.traces(id)).toEqual([]);
});

it('runs on when a save is given up', async () => {
  const abort = new AbortController();
  const saved = hands().save(id, abort.signal);
  await untilGuest(driver, id, (each) => each?.state === 'suspended');
  abort.abort();
  await saved.catch(() => {});
  if (guest()?.saved) return; // it was faster
  await untilGuest(driver, id, (each) => each?.state === 'running');
  await runsOn();
});

it('runs on when its agent dies while it is saved', async () => {
  const saved = hands().save(id, never);
  saved.catch(() => {});
  await untilGuest(driver, id, (each) => each?.state === 'suspended');
  await driver.close();
  driver = host.open();
  await driver.recover();
  if (guest()?.saved) return expect(await host.runningCopies(id)).toBe(0); // it was faster
  await untilGuest(driver, id, (each) => each?.state === 'running');
  await runsOn();
});

it('stays on disk when its file cannot be read, and says so', async () => {
  await hands().save(id, never);
  const whole = await stat(memory());
  await truncate(memory(), 100);
  await expect(hands().resume(id)).rejects.toMatchObject({ message: expect.stringContaining('cannot resume') });
  expect(guest()).toMatchObject({ state: 'suspended', saved: true });
  expect(await host.runningCopies(id)).toBe(0);
  expect(whole.size).toBeGreaterThan(100);
});

it('is ended, and the file is the guest, where its machine was left running', async () => {
  await hands().save(id, never);
  const record = join(host.directory, id, 'guest.json');
  await hands().resume(id);
  const left = await host.process(id);
  await driver.close();
  const text: unknown = JSON.parse(await readFile(record, 'utf8'));
  await writeFile(record, JSON.stringify({ ...(text as object), saved: true, suspended: true }));
  driver = host.open();
  await driver.recover();
  expect(guest()).toMatchObject({ state: 'suspended', saved: true });
  expect([left !== null, await host.runningCopies(id)]).toEqual([true, 0]);
  await driver.stop(id, 0);
});
