import { afterEach, beforeEach, expect, it } from 'vitest';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { system } from '../../../../base/system.ts';
import { untilGuest } from '../../conformance.ts';
import type { Driver, GuestLiveMigration, GuestSpec, GuestVolume, LiveSend } from '../../driver.ts';
import { makeQemuTestHost, type QemuTestHost, testSpec } from '../test-host.ts';

const execute = promisify(execFile);
const never = new AbortController().signal;
const volumeId = `vol_${'0'.repeat(26)}`;
const plain = testSpec();
const id = plain.instanceId;
const move = { id: `mig_${'0'.repeat(26)}`, revision: 7 };
let hosts: readonly [QemuTestHost, QemuTestHost];
let source: Driver;
let target: Driver;
let spec: GuestSpec;
let there: GuestSpec;

beforeEach(async () => {
  hosts = [await makeQemuTestHost(), await makeQemuTestHost()];
  [source, target] = [hosts[0].open(), hosts[1].open()];
  await source.recover();
  await target.recover();
  const volumes = await Promise.all(hosts.map((host) => host.guestVolumes.make(volumeId)));
  // As one that was attached while it ran, it is not where QEMU would put it.
  const onBus = volumes.map((volume) => ({ ...volume, slot: 20 }));
  spec = { ...plain, volumes: onBus.slice(0, 1) };
  there = { ...plain, incarnation: 2, diskIncarnation: 1, volumes: onBus.slice(1) };
  await write(volumes[0]);
  await source.create(spec, never);
  await untilGuest(source, id, (each) => each?.ready === true);
});
afterEach(async () => {
  for (const driver of [source, target]) {
    await driver.remove(id);
    await driver.close();
  }
  for (const host of hosts) await host.dispose();
});

function live(driver: Driver): GuestLiveMigration {
  if (driver.live === undefined) throw new Error('its guests cannot move while they run');
  return driver.live;
}

/** As a guest would have done. */
async function write(volume: GuestVolume | undefined): Promise<void> {
  await execute('qemu-io', ['-f', 'qcow2', '-c', 'write -q -P 7 64k 300k', volume?.path ?? '']);
}
async function expectWritten(volume: GuestVolume | undefined): Promise<void> {
  const read = ['-c', 'read -q -P 7 64k 300k', '-c', 'read -q -P 0 364k 660k'];
  await execute('qemu-io', ['-f', 'qcow2', ...read, volume?.path ?? '']); // fails where it finds something else
}

const guest = (driver: Driver) => driver.guests().find(({ instanceId }) => instanceId === id);
const call = (change: Partial<LiveSend> = {}): LiveSend => ({
  move,
  dial: (name) => live(target).connect(id, name),
  onProgress() {},
  assertUnderWay() {},
  ...change,
});
async function sendIt(): Promise<void> {
  await live(target).expect(there, await live(source).describe(id), never);
  await Promise.all([live(source).send(id, call(), never), live(target).received(id, never)]);
}
/** Only a guest that runs hears its power button. */
async function runs(driver: Driver): Promise<void> {
  await driver.stop(id, 30_000);
  expect(guest(driver)).toMatchObject({ state: 'stopped' });
  expect(guest(driver)?.reason).toBeUndefined();
}

it('arrives with its memory, stands still on both hosts, and runs where it is told to', async () => {
  const volume = { name: volumeId, sizeBytes: 1024 ** 2, label: 'data-0', slot: 20 };
  expect((await live(source).describe(id)).disks).toContainEqual(volume);
  await sendIt();
  expect(guest(source)).toMatchObject({ state: 'running', handedOver: move });
  expect(guest(target)).toMatchObject({ state: 'suspended', incarnation: 2, ready: true });
  expect(await live(source).sent(id, move.id)).toBe(true);
  expect(await live(source).sent(id, 'another move')).toBe(false);
  await source.close();
  await target.close();
  await hosts[0].untilStatus(id, 'postmigrate');
  await hosts[1].untilStatus(id, 'paused');

  // The next agents find both as they are.
  [source, target] = [hosts[0].open(), hosts[1].open()];
  await source.recover();
  await target.recover();
  expect(guest(source)).toMatchObject({ state: 'running', handedOver: move });
  expect(guest(target)).toMatchObject({ state: 'suspended' });
  await source.remove(id);
  await target.suspension?.resume(id);
  expect(guest(target)).toMatchObject({ state: 'running', volumes: [volumeId] });
  await runs(target);
  await expectWritten(there.volumes?.[0]);
});

it('is taken back when its move has come to nothing', async () => {
  await sendIt();
  await target.remove(id);
  await live(source).takeBack(id);
  expect(guest(source)?.handedOver).toBeUndefined();
  expect(await live(source).sent(id, move.id)).toBe(false);
  await runs(source);
});

it('runs on where the other machine dies, whatever step the move is at', async () => {
  await live(target).expect(there, await live(source).describe(id), never);
  const waiting = await hosts[1].process(id);
  if (waiting === null) throw new Error('no machine waits');
  const dying = call({
    assertUnderWay: () => void system.signal(waiting.pid, 'SIGKILL'), // at the switchover
  });
  const received = live(target).received(id, never);
  await expect(Promise.all([live(source).send(id, dying, never), received])).rejects.toThrow(/./);
  await target.remove(id);
  if (guest(source)?.handedOver !== undefined) await live(source).takeBack(id);
  await expect(live(source).send(id, call({ dial: () => Promise.reject(new Error('away')) }), never)).rejects.toThrow(
    /cannot send/,
  );
  expect(guest(source)?.handedOver).toBeUndefined();
  await runs(source);
});

it('runs on where its agent dies at the switchover, before it was handed over', async () => {
  await live(target).expect(there, await live(source).describe(id), never);
  const closed = Promise.withResolvers<void>();
  const dying = call({
    assertUnderWay() {
      void source.close().then(closed.resolve);
      throw new Error('the agent dies');
    },
  });
  await expect(live(source).send(id, dying, never)).rejects.toThrow(/the agent dies/);
  await closed.promise;
  await hosts[0].untilStatus(id, 'finish-migrate');
  source = hosts[0].open();
  await source.recover();
  expect(guest(source)?.handedOver).toBeUndefined();
  await source.close();
  await hosts[0].untilStatus(id, 'running');
  source = hosts[0].open();
  await source.recover();
  await runs(source);
});

it('stays suspended over a restart of its agent', async () => {
  await source.suspension?.suspend(id);
  await source.close();
  source = hosts[0].open();
  await source.recover();
  expect(guest(source)).toMatchObject({ state: 'suspended' });
  await source.suspension?.resume(id);
  await runs(source);
});

it('keeps a volume with snapshots where it is', async () => {
  await source.volumes?.snapshot(id, volumeId, 'make', 'monday');
  await expect(live(source).describe(id)).rejects.toThrow(/has snapshots/);
});

it('is refused by another machine, with all differences', async () => {
  const machine = await live(source).describe(id);
  const other = { ...there, memoryMiB: 2 * spec.memoryMiB, cpus: 2 };
  await expect(live(target).expect(other, machine, never)).rejects.toMatchObject({
    code: 'NotPossible',
    message: expect.stringMatching(/TCG, 1 x max.*memory/),
  });
  expect(await hosts[1].runningCopies(id)).toBe(0);
});

it('does not outlive its agent while it waits', async () => {
  await live(target).expect(there, await live(source).describe(id), never);
  expect(guest(target)).toMatchObject({ state: 'preparing' });
  await target.close();
  target = hosts[1].open();
  await target.recover();
  expect(await hosts[1].runningCopies(id)).toBe(0);
  expect(guest(target)).toMatchObject({ state: 'preparing' });
});
