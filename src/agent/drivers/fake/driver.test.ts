import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../base/clock.ts';
import { seededPrng } from '../../../base/prng.ts';
import { driverConformance, machineWords } from '../conformance.ts';
import type { GuestSpec } from '../driver.ts';
import { createFakeDriver } from './driver.ts';
import { createFakeWorld } from './world.ts';

/** Time that jumps to the next timer whenever nothing else is left to do. */
function jumpingClock(): Clock {
  let now = 1_700_000_000_000;
  const timers = new Set<{ atMs: number; fire: () => void }>();
  const fireNext = (): void => {
    const next = [...timers].sort((a, b) => a.atMs - b.atMs)[0];
    if (next === undefined) return;
    timers.delete(next);
    now = Math.max(now, next.atMs);
    next.fire();
    setImmediate(fireNext);
  };
  return {
    nowMs: () => now,
    monotonicMs: () => now,
    setTimer(delayMs, fire) {
      const timer = { atMs: now + delayMs, fire };
      timers.add(timer);
      if (timers.size === 1) setImmediate(fireNext);
      return { cancel: () => void timers.delete(timer) };
    },
  };
}

const runDisk = '/pretended/run.img';
const instanceId = 'inst_00000000000000000000000001';

driverConformance('the fake driver', async () => {
  const world = createFakeWorld({ clock: jumpingClock(), latencies: { bootMs: 300 } });
  const always = Number.POSITIVE_INFINITY;
  world.inject({ imageName: 'stubborn', do: 'ignore-power-button', times: always });
  world.inject({ imageName: 'short-lived', do: 'power-off', afterMs: 1000, times: always });
  world.inject({ imageName: 'missing', do: 'fail', step: 'pull', code: 'ImageUnavailable', times: always });
  return {
    words: machineWords,
    open: () => {
      const driver = createFakeDriver({
        world,
        host: 'host-1',
        prng: seededPrng(1),
        readRunDisk: async (path) => {
          if (path !== runDisk) throw new Error(`${path} is not there`);
          return Buffer.from('no program');
        },
        images: {
          ensure: async (name, _image, { signal, onProgress }) => {
            onProgress?.({ stage: 'downloading', doneBytes: 1 });
            if (name === 'endless')
              await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
            return { path: '/', format: 'raw', digest: 'sha256:0', virtualSizeBytes: 1 };
          },
          list: async () => [],
        },
      });
      return driver;
    },
    imageName: (kind) => kind,
    guestVolumes: {
      async make(volumeId) {
        world.volumeDisk('host-1').set(volumeId, { sizeBytes: 1024, content: '', snapshots: [] });
        return { volumeId, name: `data-${volumeId.slice(-1)}`, path: `/pretended/${volumeId}`, readOnly: false };
      },
      async openBy(id) {
        const guest = world.guest('host-1', id);
        return guest?.running ? (guest.volumes ?? []).map(({ volumeId }) => volumeId) : [];
      },
      async look(volumeId) {
        const volume = world.volumeDisk('host-1').get(volumeId);
        if (volume === undefined) throw new Error(`${volumeId} is not there`);
        return { sizeBytes: volume.sizeBytes, snapshots: volume.snapshots.map(({ name }) => name) };
      },
      letsGo: true,
    },
    outside: {
      beside: true,
      async hold(id, still) {
        const guest = world.guest('host-1', id);
        if (guest !== undefined) world.setSuspended(guest, still);
      },
      standsStill: async (id) => world.guest('host-1', id)?.state === 'suspended',
    },
    kill: async (id) => world.crash('host-1', id),
    damage: async (id) => world.damage('host-1', id),
    runningCopies: async (id) => world.runningCopies(id),
    traces: async (id) => (world.guest('host-1', id) === undefined ? [] : ['the guest']),
    makeRunDisk: async () => runDisk,
    portTaken: async (port) => world.portTaken('host-1', port),
    occupyPort: async () => {
      const release = world.occupyPort('host-1', 8080);
      return { port: 8080, release: async () => release() };
    },
    dispose: async () => {},
  };
});

describe('the fake world', () => {
  const spec: GuestSpec = {
    instanceId,
    incarnation: 1,
    name: 'a',
    hostname: 'a',
    cpus: 1,
    memoryMiB: 64,
    diskGiB: 0,
    imageName: 'tiny',
    image: {
      source: 'file:///tiny',
      decompress: 'none',
      format: 'qcow2',
      nocloud: true,
      architecture: 'amd64',
      aliases: [],
      preload: false,
      defaults: {},
    },
    ports: [],
    sshKeys: [],
    userData: '',
  };
  const never = new AbortController().signal;

  it('notes an instance that is started on two hosts at once', async () => {
    const world = createFakeWorld({ clock: jumpingClock() });
    for (const host of ['host-1', 'host-2'])
      await createFakeDriver({ world, host, prng: seededPrng(1) }).create(spec, never);
    expect(world.runningCopies(instanceId)).toBe(2);
    expect(world.doubleStarts).toMatchObject([{ instanceId, hosts: ['host-1', 'host-2'] }]);
  });

  it('does a planted fault as often as asked, then no more', async () => {
    const world = createFakeWorld({ clock: jumpingClock() });
    world.inject({ host: 'host-1', do: 'fail', step: 'clone', code: 'DiskFull', times: 2 });
    const driver = createFakeDriver({ world, host: 'host-1', prng: seededPrng(1) });
    await expect(driver.create(spec, never)).rejects.toMatchObject({ code: 'DiskFull' });
    await expect(driver.create(spec, never)).rejects.toMatchObject({ code: 'DiskFull' });
    await driver.create(spec, never);
    expect(world.runningCopies(instanceId)).toBe(1);
  });

  it('is left alone by a driver that was closed in the middle of a create', async () => {
    const world = createFakeWorld({ clock: jumpingClock() });
    const driver = createFakeDriver({ world, host: 'host-1', prng: seededPrng(1) });
    const result = driver.create(spec, never);
    await driver.close();
    await expect(result).rejects.toMatchObject({ code: 'Aborted' });
    expect(world.guest('host-1', instanceId)?.state ?? 'absent').not.toBe('running');
    expect(world.runningCopies(instanceId)).toBe(0);
  });

  it('gives the same history for the same seed', async () => {
    const history = async (seed: number): Promise<string[]> => {
      const clock = jumpingClock();
      const world = createFakeWorld({ clock });
      const driver = createFakeDriver({ world, host: 'host-1', prng: seededPrng(seed) });
      const seen: string[] = [];
      driver.watch(() => seen.push(`${clock.nowMs()} ${JSON.stringify(driver.guests())}`), never);
      await driver.create(spec, never);
      await driver.stop(instanceId, 10_000);
      await driver.remove(instanceId);
      return seen;
    };
    expect(await history(7)).toEqual(await history(7));
    expect(await history(7)).not.toEqual(await history(8));
  });

  it('loses all guests of a host that loses power, but not their records', async () => {
    const world = createFakeWorld({ clock: jumpingClock() });
    const driver = createFakeDriver({ world, host: 'host-1', prng: seededPrng(1) });
    await driver.create(spec, never);
    world.crashHost('host-1');
    expect(driver.guests()).toMatchObject([{ instanceId, state: 'failed', reason: { code: 'HypervisorExited' } }]);
  });
});
