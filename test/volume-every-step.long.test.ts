// Agents that die at every step of giving a volume to a guest that runs and of taking it away: real QEMU, by hand and by libvirt, and the tiny image's
// Linux, which lets go of disks. One guest outlives all of them.

import { copyFile, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { untilGuest } from '../src/agent/drivers/conformance.ts';
import type { Driver, GuestVolume } from '../src/agent/drivers/driver.ts';
import { makeLibvirtTestHost } from '../src/agent/drivers/libvirt/test-host.ts';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from '../src/agent/drivers/libvirt/test-libvirt.ts';
import { makeQemuTestHost, testSpec, testUsers } from '../src/agent/drivers/qemu/test-host.ts';
import { libvirtTalk, qmpTalk } from '../src/agent/drivers/test-engine-talks.ts';
import type { ImageCache } from '../src/agent/images/image-cache.ts';
import { atEveryStep } from '../src/agent/test-every-step.ts';
import type { Life } from '../src/agent/test-life.ts';
import { systemClock } from '../src/base/system.ts';
import { tinyImage } from './tiny-image.ts';

const never = new AbortController().signal;
const mebibyte = 1024 * 1024;
const volumeId = `vol_${'1'.repeat(26)}`;
const spec = testSpec({ imageName: 'tiny', memoryMiB: 128 });
const { instanceId } = spec;

/** What is asked for, in this order. */
const wishes = ['give', 'grow', 'snapshot', 'take'] as const;

describe('an agent that dies at any step of what it does to the volumes of a guest of QEMU that runs', () => {
  everyStepOf('QEMU');
});
const why = whyNoLibvirt();
describe.skipIf(why !== undefined)(
  `an agent that dies at any step of what it does to the volumes of a guest of libvirt that runs${why ? ` (${why})` : ''}`,
  () => {
    everyStepOf('libvirt');
  },
);

function everyStepOf(kind: 'QEMU' | 'libvirt'): void {
  let daemon: TestLibvirt | undefined;
  beforeAll(async () => {
    await tinyImage();
    if (kind === 'libvirt') daemon = await startLibvirt();
  });
  afterAll(() => daemon?.stop());

  it('is followed by one that finishes it, and the guest runs on', async () => {
    const host = daemon === undefined ? await makeQemuTestHost() : await makeLibvirtTestHost(daemon);
    const { guestVolumes, volumeFiles } = host;
    const images = await imagesOf(join(host.directory, '..'));
    const open = (clock = systemClock): Driver =>
      host.open({ images, clock, detachPatienceMs: 30_000, ...(daemon === undefined ? testUsers : {}) });
    /** The next one, which is let live. */
    const next = async (act: (driver: Driver) => Promise<unknown>): Promise<void> => {
      const driver = open();
      try {
        await driver.recover();
        await act(driver);
      } finally {
        await driver.close();
      }
    };
    try {
      await next(async (driver) => {
        await driver.create(spec, never);
        await untilGuest(driver, instanceId, (seen) => seen?.ready === true);
      });
      const running = await host.process(instanceId);
      const attempt = async (life: Life): Promise<void> => {
        const volume = await guestVolumes.make(volumeId);
        let wish: (typeof wishes)[number] = 'give';
        const carryOut = async (driver: Driver): Promise<void> => {
          if (wish === 'give') await driver.volumes?.set(instanceId, [volume], never);
          if (wish === 'grow') await driver.volumes?.grow(instanceId, volumeId, 2 * mebibyte);
          if (wish === 'snapshot') await driver.volumes?.snapshot(instanceId, volumeId, 'make', 'a');
          if (wish === 'take') await driver.volumes?.set(instanceId, [], never);
        };
        await life.live(async () => {
          const driver = open(life.clock);
          await driver.recover();
          for (wish of wishes) await carryOut(driver);
        });
        await life.kill();
        await next(async (driver) => {
          expect(driver.guests()).toMatchObject([{ instanceId, state: 'running' }]);
          // Never more than it is said to have.
          const told = driver.guests()[0]?.volumes ?? [];
          for (const each of await guestVolumes.openBy(instanceId)) expect(told).toContain(each);
          await carryOut(driver);
          const has = wish === 'take' ? [] : [volumeId];
          expect(await guestVolumes.openBy(instanceId)).toEqual(has);
          expect(driver.guests()[0]?.volumes ?? []).toEqual(has);
          const { sizeBytes, snapshots } = await guestVolumes.look(volumeId);
          expect(sizeBytes).toBe(wish === 'give' ? mebibyte : 2 * mebibyte);
          expect(snapshots).toEqual(wish === 'give' || wish === 'grow' ? [] : ['a']);
          await driver.volumes?.set(instanceId, [], never);
          expect(await guestVolumes.openBy(instanceId)).toEqual([]);
        });
        expect(await host.process(instanceId)).toEqual(running);
        await expectRoots(volume);
        const record = JSON.parse(await readFile(join(host.directory, instanceId, 'guest.json'), 'utf8'));
        expect(record).not.toHaveProperty('volumes');
        await volumeFiles.remove(volumeId);
      };
      const steps = await atEveryStep(attempt, { talks: [kind === 'QEMU' ? qmpTalk : libvirtTalk] });
      for (const each of kind === 'QEMU' ? qemuSteps : libvirtSteps)
        expect(steps).toContainEqual(expect.stringMatching(each));
    } finally {
      await next((driver) => driver.remove(instanceId));
      await host.dispose();
    }
  }, 600_000);
}

const qemuSteps = [/blockdev-add/, /device_add/, /block_resize/, /blockdev-snapshot/, /device_del/, /blockdev-del/];
const libvirtSteps = [/domainAttachDevice/, /domainBlockResize/, /blockdev-snapshot/, /domainDetachDevice/];

/** Where guests have users of their own it is given back. */
async function expectRoots({ path }: GuestVolume): Promise<void> {
  const { uid, gid, mode } = await stat(path);
  expect({ uid, gid, mode: mode & 0o777 }).toEqual({ uid: 0, gid: 0, mode: 0o600 });
}

/** The tiny image alone, where other users may read it. */
async function imagesOf(directory: string): Promise<ImageCache> {
  const { path } = await tinyImage();
  const own = join(directory, 'tiny.qcow2');
  await copyFile(path, own);
  return {
    ensure: async () => ({
      path: own,
      format: 'qcow2',
      digest: `sha256:${'0'.repeat(64)}`,
      virtualSizeBytes: 32 * mebibyte,
    }),
    list: async () => [],
  };
}
