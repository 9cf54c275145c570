// What every driver must do, as tests. A driver's own test brings a host to try it on and the ground truth about it:
// what really runs there and what is really left, looked up past the driver.

import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GuestPort } from '../../api/agent-protocol.ts';
import { driverFacts } from '../../api/driver-facts.ts';
import type { ImageSpec } from '../../api/resources/image.ts';
import { newId } from '../../base/ids.ts';
import { type Prng, seededPrng } from '../../base/prng.ts';
import { systemClock } from '../../base/system.ts';
import { followLog } from '../access/guest-log.ts';
import type { ReceivedFile } from '../migration/moved-files.ts';
import { openDisk } from '../migration/open-disk.ts';
import type { Driver, Guest, GuestSpec, GuestSuspension, GuestVolume, GuestVolumes } from './driver.ts';
import { DriverError, type DriverErrorCode } from '../host/driver-error.ts';

/** What the images on the tested host do. A container's program ends where a machine powers itself off, and is asked by a signal. */
export type ImageKind =
  /** Prints `boot <how often this disk was booted before>`, an address and `berth: ready`; powers off when asked. */
  | 'obedient'
  /** As obedient, but does not heed the power button. */
  | 'stubborn'
  /** Prints `berth: ready` and powers itself off. */
  | 'short-lived'
  /** Cannot be had: `ImageUnavailable`. */
  | 'missing'
  /** Its pull never ends. */
  | 'endless';

/** Where kinds of guests differ. */
export interface GuestWords {
  /** What takes how long, in order. */
  readonly phases: readonly string[];
  readonly address: RegExp;
  /** Reason of a guest that ended by itself. */
  readonly ended: string;
  /** Reason of a guest that was killed. */
  readonly killed: string;
  /** Who says that a guest is ready: what the guest wrote before that is in its log by then, or may still be on its way there. */
  readonly readyBy: 'console' | 'engine';
}

export const machineWords: GuestWords = {
  phases: ['pull', 'clone', 'start', 'boot'],
  address: /^10\.0\.2\.15$/,
  ended: 'GuestShutdown',
  killed: 'HypervisorExited',
  readyBy: 'console',
};

export interface ConformanceHost {
  readonly words: GuestWords;
  /** A driver over this host, as a new run of the agent makes it; not recovered yet. */
  open(): Driver;
  imageName(kind: ImageKind): string;
  /** Absent: what an image is is not asked for. */
  imageSpec?(kind: ImageKind): ImageSpec;
  /** The guest's process dies, as by SIGKILL. */
  kill(instanceId: string): Promise<void>;
  /** What an earlier run of the driver wrote down of a guest becomes unreadable. While none is open. */
  damage(instanceId: string): Promise<void>;
  runningCopies(instanceId: string): Promise<number>;
  /** What is left of a guest: processes, files, ports. */
  traces(instanceId: string): Promise<readonly string[]>;
  /** Who else may suspend its guests. Absent: the driver cannot, either. */
  readonly outside?: ConformanceHolder;
  /** False: the driver refuses them all, and cases that are not about ports do without. */
  readonly publishesPorts?: false;
  /** Volumes of this host. Absent: the driver refuses them all. */
  readonly guestVolumes?: ConformanceVolumes;
  /** Makes a file to be a guest's disk with a program. Absent: the driver refuses guests with one. */
  makeRunDisk?(): Promise<string>;
  portTaken(port: number): Promise<boolean>;
  /** Another program takes some port of this host, until `release`. */
  occupyPort(): Promise<{ readonly port: number; release(): Promise<void> }>;
  dispose(): Promise<void>;
}

export interface ConformanceHolder {
  /** False: the hypervisor listens to one at a time, so only while no driver is open. */
  readonly beside: boolean;
  /** Suspends it, or lets it go on. */
  hold(instanceId: string, still: boolean): Promise<void>;
  standsStill(instanceId: string): Promise<boolean>;
}

export interface ConformanceVolumes {
  make(volumeId: string): Promise<GuestVolume>;
  /** Ids of those that the guest really has open, in order. */
  openBy(instanceId: string): Promise<readonly string[]>;
  look(volumeId: string): Promise<{ readonly sizeBytes: number; readonly snapshots: readonly string[] }>;
  /** False: the guests know no hotplug, and keep what they have for as long as they run. */
  readonly letsGo: boolean;
}

/**
 * Registers the suite under `name`. `makeHost` is called for every test. `cannot`: the cases, by their titles, that the driver cannot
 * pass by its nature, with the reason.
 */
export function driverConformance(
  name: string,
  makeHost: () => Promise<ConformanceHost>,
  cannot: Readonly<Record<string, string>> = {},
): void {
  const titles = new Set<string>();
  const it = (title: string, body: () => Promise<void>): void => {
    titles.add(title);
    const reason = cannot[title];
    test.runIf(reason === undefined)(`${title}${reason === undefined ? '' : ` (cannot: ${reason})`}`, body);
  };
  describe(`${name} keeps the driver contract`, () => {
    let host: ConformanceHost;
    let driver: Driver;
    let opened: Driver[];
    const never = new AbortController().signal;
    const prng: Prng = seededPrng(1, name);
    let births = 0;

    const open = async (): Promise<Driver> => {
      driver = host.open();
      opened.push(driver);
      await driver.recover();
      return driver;
    };
    beforeEach(async () => {
      host = await makeHost();
      opened = [];
      await open();
    });
    afterEach(async () => {
      for (const guest of driver.guests()) await driver.remove(guest.instanceId);
      for (const each of opened) await each.close();
      await host.dispose();
    });

    const spec = (kind: ImageKind, change: Partial<GuestSpec> = {}): GuestSpec => ({
      instanceId: newId('inst', ++births, prng),
      incarnation: 1,
      name: 'web-1',
      hostname: 'web-1',
      cpus: 1,
      memoryMiB: 64,
      diskGiB: 0,
      ...imageOf(kind),
      ports: [],
      sshKeys: [],
      userData: '',
      ...change,
    });
    /** Where a case is about something else, and ports are only there too. */
    const somePort = (guestPort: number): readonly GuestPort[] =>
      host.publishesPorts === false ? [] : [{ guestPort, hostPort: 0, protocol: 'tcp' }];
    const imageOf = (kind: ImageKind): Pick<GuestSpec, 'imageName' | 'image'> => ({
      imageName: host.imageName(kind),
      image: host.imageSpec?.(kind) ?? anyImage,
    });
    const find = (instanceId: string): Guest | undefined =>
      driver.guests().find((guest) => guest.instanceId === instanceId);
    const until = (instanceId: string, what: (guest: Guest | undefined) => boolean): Promise<Guest | undefined> =>
      untilGuest(driver, instanceId, what);
    const create = (wanted: GuestSpec): Promise<void> => driver.create(wanted, never);
    const fails = async (act: Promise<unknown>): Promise<DriverErrorCode | 'none' | 'foreign'> =>
      act.then(
        () => 'none',
        (error: unknown) => (error instanceof DriverError ? error.code : 'foreign'),
      );
    const log = async (instanceId: string): Promise<string> => {
      const chunk = await driver.readLog(instanceId, 0, 65_536);
      return new TextDecoder().decode(chunk.data);
    };
    /** What a guest that was ready has written up to `end`: there at once, unless it was not the guest who said so. */
    const logUpTo = async (instanceId: string, end: string): Promise<string> => {
      if (host.words.readyBy === 'console') return log(instanceId);
      let text = '';
      const range = { instanceId, offset: 0, follow: true };
      for await (const { data } of followLog({ driver, clock: systemClock, range }, never)) {
        text += new TextDecoder().decode(data);
        if (text.includes(end)) break;
      }
      return text;
    };

    it('says whether it works here', async () => {
      expect(await driver.fingerprint()).toMatchObject({ available: true });
    });

    describe('create', () => {
      it('makes a guest that runs, becomes ready, and has an address, phases and a log', async () => {
        const wanted = spec('obedient');
        await create(wanted);
        expect(find(wanted.instanceId)).toMatchObject({ state: 'running', incarnation: 1 });
        const guest = await until(wanted.instanceId, (seen) => seen?.ready === true);
        expect(guest?.address).toMatch(host.words.address);
        expect(guest?.startedAtMs).toBeGreaterThan(0);
        expect(guest?.phases.map((phase) => phase.name).filter((each) => each !== 'seed')).toEqual(host.words.phases);
        expect(await logUpTo(wanted.instanceId, 'berth: ready\n')).toContain('berth: ready\n');
        expect(await host.runningCopies(wanted.instanceId)).toBe(1);
      });

      it('twice is once, one after the other and at the same time', async () => {
        const wanted = spec('obedient');
        await Promise.all([create(wanted), create(wanted)]);
        await create(wanted);
        expect(await host.runningCopies(wanted.instanceId)).toBe(1);
        await until(wanted.instanceId, (seen) => seen?.ready === true);
        expect((await logUpTo(wanted.instanceId, 'berth: ready\n')).match(/boot 0/g)).toHaveLength(1);
      });

      it('does not run a guest again that has run and ended, unless told to start it', async () => {
        const wanted = spec('short-lived');
        await create(wanted);
        const ended = await until(wanted.instanceId, (seen) => seen?.state === 'exited');
        await create(wanted);
        expect(find(wanted.instanceId)?.state).toBe('exited');
        expect(await host.runningCopies(wanted.instanceId)).toBe(0);
        await driver.start(wanted.instanceId);
        const again = await until(wanted.instanceId, (seen) => seen?.state === 'exited');
        expect(again).toMatchObject({ incarnation: wanted.incarnation });
        expect(again?.startedAtMs).toBeGreaterThan(ended?.startedAtMs ?? 0); // so that its two ends are told apart
      });

      it('fails with a code, leaves a failed guest that does not run, and nothing after its removal', async () => {
        const wanted = spec('missing');
        expect(await fails(create(wanted))).toBe('ImageUnavailable');
        expect(find(wanted.instanceId)).toMatchObject({ state: 'failed', reason: { code: 'ImageUnavailable' } });
        expect(await host.runningCopies(wanted.instanceId)).toBe(0);
        await driver.remove(wanted.instanceId);
        expect(await host.traces(wanted.instanceId)).toEqual([]);
      });

      it('succeeds after it failed, once the cause is gone', async () => {
        const { port, release } = await host.occupyPort();
        const wanted = spec('obedient', { ports: [{ guestPort: 22, hostPort: port, protocol: 'tcp' }] });
        expect(await fails(create(wanted))).toBe('PortInUse');
        expect(find(wanted.instanceId)?.reason?.message).toContain(String(port));
        await release();
        await create(wanted);
        expect(find(wanted.instanceId)).toMatchObject({ state: 'running' });
        expect(find(wanted.instanceId)?.reason).toBeUndefined();
      });

      it('gives up when its signal aborts', async () => {
        const wanted = spec('endless');
        const signal = new AbortController();
        const result = fails(driver.create(wanted, signal.signal));
        await until(wanted.instanceId, (seen) => seen?.progress !== undefined);
        signal.abort();
        expect(await result).toBe('Aborted');
        expect(find(wanted.instanceId)).toMatchObject({ state: 'failed', reason: { code: 'Aborted' } });
        expect(await fails(driver.create(spec('obedient'), AbortSignal.abort()))).toBe('Aborted');
      });

      it('of a newer incarnation replaces the older guest, disk and all', async () => {
        const wanted = spec('obedient');
        await create(wanted);
        await until(wanted.instanceId, (seen) => seen?.ready === true);
        await create({ ...wanted, incarnation: 2 });
        const guest = await until(wanted.instanceId, (seen) => seen?.ready === true);
        expect(guest).toMatchObject({ incarnation: 2, state: 'running' });
        expect(await logUpTo(wanted.instanceId, 'berth: ready\n')).not.toContain('boot 1');
        expect(await host.runningCopies(wanted.instanceId)).toBe(1);
        expect(await fails(create(wanted))).toBe('Internal'); // the older one must not come back
      });

      it('runs two guests beside each other', async () => {
        const ports = somePort(22);
        const [one, two] = [spec('obedient', { ports }), spec('obedient', { ports })];
        await Promise.all([create(one), create(two)]);
        const chosen = [one, two].flatMap((each) => find(each.instanceId)?.ports.map(({ hostPort }) => hostPort) ?? []);
        expect(new Set(chosen).size).toBe(2 * ports.length);
        await driver.remove(one.instanceId);
        expect(await host.runningCopies(two.instanceId)).toBe(1);
      });
    });

    it('measures what a guest uses while it runs, where it can measure', async () => {
      if (driver.usage === undefined) return expect(['fake', 'zones']).toContain(driver.name);
      const wanted = spec('obedient');
      const { instanceId } = wanted;
      await create(wanted);
      await until(instanceId, (seen) => seen?.ready === true);
      const [used, ...others] = await driver.usage();
      expect(others).toEqual([]);
      expect(used).toMatchObject({ instanceId, incarnation: 1 });
      expect(used?.cpuMs).toBeGreaterThan(0); // its boot
      expect(used?.memoryBytes).toBeGreaterThan(100_000);
      await driver.stop(instanceId, 0);
      expect(await driver.usage()).toEqual([]);
    });

    describe('ports', () => {
      it('are chosen, published while the guest runs, and free after its removal', async () => {
        const wanted = spec('obedient', { ports: [{ guestPort: 80, hostPort: 0, protocol: 'tcp' }] });
        await create(wanted);
        const port = find(wanted.instanceId)?.ports[0]?.hostPort ?? 0;
        expect(port).toBeGreaterThan(0);
        expect(await host.portTaken(port)).toBe(true);
        await driver.remove(wanted.instanceId);
        expect(await host.portTaken(port)).toBe(false);
      });

      it('of one guest are refused to another, also while it is stopped', async () => {
        const one = spec('obedient', { ports: [{ guestPort: 80, hostPort: 0, protocol: 'tcp' }] });
        await create(one);
        await driver.stop(one.instanceId, 0);
        const two = spec('obedient', { ports: find(one.instanceId)?.ports ?? [] });
        expect(await fails(create(two))).toBe('PortInUse');
        await driver.remove(one.instanceId);
        await create(two);
      });
    });

    describe('the log', () => {
      it('is read by byte offset, piece by piece, and is empty at its end and behind it', async () => {
        const wanted = spec('obedient');
        await create(wanted);
        await until(wanted.instanceId, (seen) => seen?.ready === true);
        await logUpTo(wanted.instanceId, 'berth: ready\n');
        const whole = await driver.readLog(wanted.instanceId, 0, 65_536);
        expect(whole.data.length).toBe(whole.size);
        const piece = await driver.readLog(wanted.instanceId, 3, 5);
        expect(piece.offset).toBe(3);
        expect([...piece.data]).toEqual([...whole.data.subarray(3, 8)]);
        const end = await driver.readLog(wanted.instanceId, whole.size, 100);
        expect(end).toMatchObject({ offset: whole.size, size: whole.size });
        expect(end.data).toHaveLength(0);
        expect((await driver.readLog(wanted.instanceId, whole.size + 1000, 100)).data).toHaveLength(0);
      });

      it('outlives the guest’s end and goes with its removal', async () => {
        const wanted = spec('short-lived');
        await create(wanted);
        const guest = await until(wanted.instanceId, (seen) => seen?.state === 'exited');
        expect(guest).toMatchObject({ ready: true, reason: { code: host.words.ended } });
        expect(await log(wanted.instanceId)).toContain('berth: ready');
        await driver.remove(wanted.instanceId);
        expect(await fails(driver.readLog(wanted.instanceId, 0, 1))).toBe('NoSuchGuest');
      });
    });

    describe('stop and start', () => {
      it('lets a guest power off by itself, and starts it again from its own disk', async () => {
        const wanted = spec('obedient');
        await create(wanted);
        await until(wanted.instanceId, (seen) => seen?.ready === true);
        await logUpTo(wanted.instanceId, 'berth: ready\n');
        await driver.stop(wanted.instanceId, 60_000);
        expect(find(wanted.instanceId)?.state).toBe('stopped');
        expect(find(wanted.instanceId)?.reason).toBeUndefined();
        expect(await host.runningCopies(wanted.instanceId)).toBe(0);
        await driver.stop(wanted.instanceId, 60_000);
        await driver.start(wanted.instanceId);
        await driver.start(wanted.instanceId);
        const guest = await until(wanted.instanceId, (seen) => seen?.ready === true);
        expect(guest?.state).toBe('running');
        expect(guest?.phases.filter((phase) => phase.name === 'boot')).toHaveLength(1);
        expect(await logUpTo(wanted.instanceId, 'boot 1')).toMatch(/boot 0[^]*boot 1/);
        expect(await host.runningCopies(wanted.instanceId)).toBe(1);
      });

      it('ends a guest that does not heed the power button when the grace is over', async () => {
        const wanted = spec('stubborn');
        await create(wanted);
        await until(wanted.instanceId, (seen) => seen?.ready === true);
        await logUpTo(wanted.instanceId, 'berth: ready\n');
        await driver.stop(wanted.instanceId, 50);
        expect(find(wanted.instanceId)).toMatchObject({ state: 'stopped', reason: { code: 'StopForced' } });
        expect(await host.runningCopies(wanted.instanceId)).toBe(0);
      });

      it('does not let a patient stop hold up an impatient one, nor a removal', async () => {
        const [one, two] = [spec('stubborn'), spec('stubborn')];
        await create(one);
        await create(two);
        const patient = [driver.stop(one.instanceId, 3_600_000), driver.stop(two.instanceId, 3_600_000)];
        await until(one.instanceId, () => true);
        await driver.stop(one.instanceId, 0);
        await driver.remove(two.instanceId);
        await Promise.all(patient);
        expect(find(one.instanceId)?.state).toBe('stopped');
        expect(find(two.instanceId)).toBeUndefined();
      });

      it('refuses to start what is not there, and does not mind stopping it', async () => {
        const nobody = spec('obedient').instanceId;
        expect(await fails(driver.start(nobody))).toBe('NoSuchGuest');
        expect(await fails(driver.readLog(nobody, 0, 1))).toBe('NoSuchGuest');
        await driver.stop(nobody, 0);
      });
    });

    describe('suspend and resume', () => {
      /** Undefined: guests of this driver cannot be. */
      const offered = (): GuestSuspension | undefined => {
        expect(driver.suspension === undefined).toBe(host.outside === undefined);
        return driver.suspension;
      };
      const state = (instanceId: string): string | undefined => find(instanceId)?.state;

      it('holds a guest still, through a restart of the driver, and lets it go on where it was', async () => {
        const hands = offered();
        if (hands === undefined) return expect(driver.suspension).toBeUndefined();
        const wanted = spec('obedient');
        const { instanceId } = wanted;
        await create(wanted);
        await until(instanceId, (seen) => seen?.ready === true);
        await logUpTo(instanceId, 'berth: ready\n');
        const before = find(instanceId);
        for (const _ of [1, 2]) await hands.suspend(instanceId);
        expect(find(instanceId)).toEqual({ ...before, state: 'suspended' });
        await create(wanted);
        await driver.start(instanceId);
        expect(state(instanceId)).toBe('suspended');
        await driver.close();
        expect(await host.outside?.standsStill(instanceId)).toBe(true);
        await open();
        expect(find(instanceId)).toEqual({ ...before, state: 'suspended' });
        for (const _ of [1, 2]) await driver.suspension?.resume(instanceId);
        expect(find(instanceId)).toEqual(before);
        await driver.close();
        expect(await host.outside?.standsStill(instanceId)).toBe(false);
        await open();
        expect(find(instanceId)).toEqual(before);
        expect(await host.runningCopies(instanceId)).toBe(1);
        expect(await log(instanceId)).not.toContain('boot 1');
        await driver.stop(instanceId, 60_000);
        expect(state(instanceId)).toBe('stopped');
      });

      it('tells of a guest that somebody else suspended, and of one that somebody else let go on', async () => {
        if (offered() === undefined) return expect(driver.suspension).toBeUndefined();
        const wanted = spec('obedient');
        const { instanceId } = wanted;
        await create(wanted);
        const { outside } = host;
        if (outside?.beside === true) {
          await outside.hold(instanceId, true);
          await until(instanceId, (seen) => seen?.state === 'suspended');
          await outside.hold(instanceId, false);
          await until(instanceId, (seen) => seen?.state === 'running');
        }
        for (const still of [true, false]) {
          await driver.close();
          await outside?.hold(instanceId, still);
          await open();
          await until(instanceId, (seen) => seen?.state === (still ? 'suspended' : 'running'));
        }
        await driver.suspension?.suspend(instanceId);
        expect(state(instanceId)).toBe('suspended');
      });

      it('lets a suspended guest power off by itself when it is stopped, and starts it anew', async () => {
        const hands = offered();
        if (hands === undefined) return expect(driver.suspension).toBeUndefined();
        const wanted = spec('obedient');
        const { instanceId } = wanted;
        await create(wanted);
        await until(instanceId, (seen) => seen?.ready === true);
        await hands.suspend(instanceId);
        await driver.stop(instanceId, 60_000);
        expect(state(instanceId)).toBe('stopped');
        expect(await host.runningCopies(instanceId)).toBe(0);
        await driver.start(instanceId);
        expect(await until(instanceId, (seen) => seen?.ready === true)).toMatchObject({ state: 'running' });
      });

      it('ends and removes a suspended guest', async () => {
        const hands = offered();
        if (hands === undefined) return expect(driver.suspension).toBeUndefined();
        const [ended, removed, killed] = [
          spec('stubborn'),
          spec('obedient', { ports: somePort(22) }),
          spec('obedient'),
        ];
        for (const each of [ended, removed, killed]) {
          await create(each);
          await hands.suspend(each.instanceId);
        }
        await driver.stop(ended.instanceId, 0);
        expect(state(ended.instanceId)).toBe('stopped');
        expect(await host.runningCopies(ended.instanceId)).toBe(0);
        await driver.remove(removed.instanceId);
        expect(await host.traces(removed.instanceId)).toEqual([]);
        await host.kill(killed.instanceId);
        const dead = await until(killed.instanceId, (seen) => seen?.state === 'failed');
        expect(dead?.reason).toMatchObject({ code: host.words.killed });
        await driver.start(killed.instanceId);
        expect(state(killed.instanceId)).toBe('running');
      });

      it('keeps the memory of a guest on disk, with nothing that runs, and lets it go on where it was', async () => {
        const save = driver.suspension?.save;
        if (save === undefined) return expect(driver.suspension?.save).toBeUndefined();
        const wanted = spec('obedient');
        const { instanceId } = wanted;
        await create(wanted);
        await until(instanceId, (seen) => seen?.ready === true);
        await logUpTo(instanceId, 'berth: ready\n');
        const before = find(instanceId);
        for (const _ of [1, 2]) await driver.suspension?.save?.(instanceId, new AbortController().signal);
        expect(find(instanceId)).toEqual({ ...before, state: 'suspended', saved: true });
        expect(await host.runningCopies(instanceId)).toBe(0);
        await driver.close();
        await open();
        await create(wanted);
        expect(find(instanceId)).toEqual({ ...before, state: 'suspended', saved: true });
        for (const _ of [1, 2]) await driver.suspension?.resume(instanceId);
        expect(find(instanceId)).toEqual(before);
        expect(await host.runningCopies(instanceId)).toBe(1);
        expect(await log(instanceId)).not.toContain('boot 1');
        await driver.stop(instanceId, 60_000);
        expect(find(instanceId)?.reason).toBeUndefined();
      });

      it('is refused for what does not run, or is not there', async () => {
        const hands = offered();
        if (hands === undefined) return expect(driver.suspension).toBeUndefined();
        const wanted = spec('obedient');
        expect(await fails(hands.suspend(wanted.instanceId))).toBe('NoSuchGuest');
        await create(wanted);
        await driver.stop(wanted.instanceId, 0);
        expect(await fails(hands.suspend(wanted.instanceId))).toBe('NotPossible');
        expect(await fails(hands.resume(wanted.instanceId))).toBe('NotPossible');
        expect(state(wanted.instanceId)).toBe('stopped');
      });
    });

    describe('a guest that dies', () => {
      it('is failed, with a reason, and can be started again', async () => {
        const wanted = spec('obedient');
        await create(wanted);
        await host.kill(wanted.instanceId);
        const guest = await until(wanted.instanceId, (seen) => seen?.state === 'failed');
        expect(guest?.reason).toMatchObject({ code: host.words.killed });
        await driver.start(wanted.instanceId);
        expect(await until(wanted.instanceId, (seen) => seen?.ready === true)).toMatchObject({ state: 'running' });
      });
    });

    describe('remove', () => {
      it('leaves nothing, and is harmless a second time and for what never was', async () => {
        const wanted = spec('obedient', { ports: somePort(22) });
        await create(wanted);
        expect(await host.traces(wanted.instanceId)).not.toEqual([]);
        await driver.remove(wanted.instanceId);
        expect(find(wanted.instanceId)).toBeUndefined();
        expect(await host.traces(wanted.instanceId)).toEqual([]);
        await driver.remove(wanted.instanceId);
        await driver.remove(spec('obedient').instanceId);
      });

      it('ends a create that is under way', async () => {
        const wanted = spec('endless');
        const result = fails(create(wanted));
        await until(wanted.instanceId, (seen) => seen?.progress !== undefined);
        await driver.remove(wanted.instanceId);
        expect(await result).toBe('Aborted');
        expect(find(wanted.instanceId)).toBeUndefined();
        expect(await host.traces(wanted.instanceId)).toEqual([]);
      });

      it('at any moment of a create leaves nothing', async () => {
        for (const moment of host.words.phases.slice(0, 3)) {
          const wanted = spec('obedient');
          const result = fails(create(wanted));
          await until(wanted.instanceId, (seen) => seen?.phases.some((phase) => phase.name === moment) === true);
          await driver.remove(wanted.instanceId);
          expect(await result).toBe(moment === 'start' ? 'none' : 'Aborted');
          expect(await host.traces(wanted.instanceId)).toEqual([]);
        }
      });
    });

    describe('recover', () => {
      it('adopts what runs, without disturbing it', async () => {
        const wanted = spec('obedient', { ports: somePort(22) });
        await create(wanted);
        await until(wanted.instanceId, (seen) => seen?.ready === true);
        await logUpTo(wanted.instanceId, 'berth: ready\n');
        const before = find(wanted.instanceId);
        await driver.close();
        expect(await host.runningCopies(wanted.instanceId)).toBe(1);
        await open();
        expect(find(wanted.instanceId)).toEqual(before);
        await create(wanted);
        expect(await host.runningCopies(wanted.instanceId)).toBe(1);
        expect(await log(wanted.instanceId)).not.toContain('boot 1');
        await driver.stop(wanted.instanceId, 60_000);
        expect(find(wanted.instanceId)?.state).toBe('stopped');
      });

      it('hears of a boot that ended while nobody looked, and of a death', async () => {
        const [booting, dying, leaving] = [spec('obedient'), spec('obedient'), spec('short-lived')];
        for (const each of [booting, dying, leaving]) await create(each);
        await driver.close();
        await host.kill(dying.instanceId);
        await open();
        await until(booting.instanceId, (seen) => seen?.ready === true);
        expect(await until(dying.instanceId, (seen) => seen?.state === 'failed')).toMatchObject({
          reason: { code: host.words.killed },
        });
        expect(await until(leaving.instanceId, (seen) => seen?.state === 'exited')).toMatchObject({
          reason: { code: host.words.ended },
        });
      });

      it('finds a create that was interrupted still preparing; create finishes it', async () => {
        const wanted = spec('endless');
        const result = fails(create(wanted));
        await until(wanted.instanceId, (seen) => seen?.progress !== undefined);
        await driver.close();
        expect(await result).toBe('Aborted');
        await open();
        expect(find(wanted.instanceId)?.state).toBe('preparing');
        await create({ ...wanted, ...imageOf('obedient') });
        expect(find(wanted.instanceId)?.state).toBe('running');
      });

      it('shows a guest of which it cannot tell what it was as damaged, and touches it only to remove it', async () => {
        const wanted = spec('obedient');
        const { instanceId } = wanted;
        await create(wanted);
        await driver.close();
        await host.damage(instanceId);
        const before = await host.traces(instanceId);
        await open();
        // Called failed, another would be started beside it.
        const shown = { state: 'running', damaged: true, incarnation: 0, reason: { code: 'RecordDamaged' } };
        expect(find(instanceId)).toMatchObject(shown);
        expect(await fails(create(wanted))).toBe('Internal');
        expect(await fails(create({ ...wanted, incarnation: 2 }))).toBe('Internal');
        expect(await fails(driver.start(instanceId))).toBe('Internal');
        await driver.stop(instanceId, 0);
        expect(find(instanceId)).toMatchObject(shown);
        expect(await host.traces(instanceId)).toEqual(before);
        expect(await host.runningCopies(instanceId)).toBe(1);
        await driver.remove(instanceId);
        expect(find(instanceId)).toBeUndefined();
        expect(await host.traces(instanceId)).toEqual([]);
        await create(wanted);
        expect(await host.runningCopies(instanceId)).toBe(1);
      });

      it('remembers a guest that was stopped', async () => {
        const wanted = spec('obedient');
        await create(wanted);
        await driver.stop(wanted.instanceId, 0);
        await driver.close();
        await open();
        expect(find(wanted.instanceId)?.state).toBe('stopped');
        await driver.start(wanted.instanceId);
        expect(await host.runningCopies(wanted.instanceId)).toBe(1);
      });
    });

    describe('a guest that does not run', () => {
      const stopped = async (): Promise<GuestSpec> => {
        const wanted = spec('obedient');
        await create(wanted);
        await until(wanted.instanceId, (seen) => seen?.ready === true);
        await driver.stop(wanted.instanceId, 60_000);
        return wanted;
      };

      it('boots from its disk where that has been copied to', async () => {
        const { migration } = driver;
        expect(migration !== undefined).toBe(driverFacts.find((each) => each.name === driver.name)?.migrates === true);
        if (migration === undefined) return;
        const wanted = await stopped();
        const { instanceId } = wanted;
        const reader = await migration.openDisk(instanceId);
        const bytes = await reader.read(0, reader.sizeBytes);
        await reader.close();
        await driver.remove(instanceId);
        const directory = await mkdtemp(join(tmpdir(), 'berth-moved-'));
        const path = join(directory, 'disk.qcow2');
        await writeFile(path, bytes);
        const disk: ReceivedFile = { path, bytes: async () => bytes, open: () => openDisk(path), write() {} };
        const there = { ...wanted, incarnation: 2, diskIncarnation: 1, disk };
        await migration.prepare(there, never);
        await migration.accept(there, disk, never);
        await create(there);
        await rm(directory, { recursive: true });
        expect(await fails(migration.openDisk(instanceId))).toBe('NotPossible'); // it runs
        await until(instanceId, (seen) => seen?.ready === true);
        expect(await logUpTo(instanceId, 'boot 1')).toContain('boot 1');
        expect(find(instanceId)).toMatchObject({ state: 'running', incarnation: 2 });
      });

      it('has other amounts from its next start, when it is resized', async () => {
        const { resize } = driver;
        if (resize === undefined) return expect(driver.migration).toBeUndefined();
        const { instanceId } = await stopped();
        await driver.resize?.(instanceId, { cpus: 2, memoryMiB: 96, diskGiB: 1, order: 7 });
        expect(find(instanceId)).toMatchObject({ state: 'stopped', resized: 7 });
        await driver.start(instanceId);
        const guest = await until(instanceId, (seen) => seen?.ready === true);
        expect(guest).toMatchObject({ state: 'running', resized: 7 });
        expect(await logUpTo(instanceId, 'boot 1')).toContain('boot 1');
        expect(await fails(resize(instanceId, { cpus: 1, memoryMiB: 64, diskGiB: 1, order: 8 }))).toBe('NotPossible');
      });
    });

    describe('volumes', () => {
      const volumeId = (digit: number): string => `vol_${String(digit).repeat(26)}`;
      /** What the host and its driver have for it; undefined: neither has any. */
      const offered = (): { readonly on: ConformanceVolumes; readonly hands: GuestVolumes } | undefined => {
        expect(driver.volumes === undefined).toBe(host.guestVolumes === undefined);
        return host.guestVolumes && driver.volumes && { on: host.guestVolumes, hands: driver.volumes };
      };
      const idsOf = (instanceId: string): readonly string[] => find(instanceId)?.volumes ?? [];

      it('are refused, all of them, where guests can have none', async () => {
        if (offered() !== undefined) return expect(driver.volumes).toBeDefined();
        const some = { volumeId: volumeId(1), name: 'data', path: '/nowhere/disk.qcow2', readOnly: false };
        const wanted = spec('obedient', { volumes: [some] });
        expect(await fails(create(wanted))).toBe('NotPossible');
        expect(idsOf(wanted.instanceId)).toEqual([]);
        expect(await host.runningCopies(wanted.instanceId)).toBe(0);
      });

      it('are there from the start, through a stop, and until they are taken from the stopped guest', async () => {
        const { on, hands } = offered() ?? {};
        if (on === undefined || hands === undefined) return expect(driver.volumes).toBeUndefined();
        const [one, two] = [await on.make(volumeId(1)), { ...(await on.make(volumeId(2))), readOnly: true }];
        const wanted = spec('obedient', { volumes: [one, two] });
        const { instanceId } = wanted;
        await create(wanted);
        expect(idsOf(instanceId)).toEqual([one.volumeId, two.volumeId]);
        expect(await on.openBy(instanceId)).toEqual([one.volumeId, two.volumeId]);
        await driver.stop(instanceId, 0);
        expect(idsOf(instanceId)).toEqual([one.volumeId, two.volumeId]);
        expect(await on.openBy(instanceId)).toEqual([]);
        await hands.set(instanceId, [two], never);
        expect(idsOf(instanceId)).toEqual([two.volumeId]);
        await driver.close();
        await open();
        expect(idsOf(instanceId)).toEqual([two.volumeId]);
        await driver.start(instanceId);
        expect(await on.openBy(instanceId)).toEqual([two.volumeId]);
        await driver.remove(instanceId);
        expect(await on.look(one.volumeId)).toMatchObject({ snapshots: [] });
        expect(await on.look(two.volumeId)).toMatchObject({ snapshots: [] });
      });

      it('come to a guest that runs, once, and are found by the next agent', async () => {
        const { on, hands } = offered() ?? {};
        if (on === undefined || hands === undefined) return expect(driver.volumes).toBeUndefined();
        const [one, two] = [await on.make(volumeId(1)), await on.make(volumeId(2))];
        const wanted = spec('obedient', { volumes: [one] });
        const { instanceId } = wanted;
        await create(wanted);
        await until(instanceId, (seen) => seen?.ready === true);
        await hands.set(instanceId, [one, two], never);
        await hands.set(instanceId, [one, two], never);
        expect(idsOf(instanceId)).toEqual([one.volumeId, two.volumeId]);
        expect(await on.openBy(instanceId)).toEqual([one.volumeId, two.volumeId]);
        await driver.close();
        await open();
        expect(idsOf(instanceId)).toEqual([one.volumeId, two.volumeId]);
        await driver.volumes?.set(instanceId, [one, two], never);
        expect(await on.openBy(instanceId)).toEqual([one.volumeId, two.volumeId]);
        await driver.stop(instanceId, 0);
        await driver.start(instanceId);
        expect(await on.openBy(instanceId)).toEqual([one.volumeId, two.volumeId]);
      });

      it('go from a guest that runs when it lets go of them, and stay its own until then', async () => {
        const { on, hands } = offered() ?? {};
        if (on === undefined || hands === undefined) return expect(driver.volumes).toBeUndefined();
        const [one, two] = [await on.make(volumeId(1)), await on.make(volumeId(2))];
        const wanted = spec('obedient', { volumes: [one] });
        const { instanceId } = wanted;
        await create(wanted);
        await until(instanceId, (seen) => seen?.ready === true);
        expect(await fails(hands.set(instanceId, [two], never))).toBe(on.letsGo ? 'none' : 'NotPossible');
        const left = on.letsGo ? [two.volumeId] : [one.volumeId, two.volumeId];
        expect(idsOf(instanceId)).toEqual(left);
        expect(await on.openBy(instanceId)).toEqual(left);
        await driver.stop(instanceId, 0);
        await hands.set(instanceId, [], never);
        expect(idsOf(instanceId)).toEqual([]);
        await driver.start(instanceId);
        expect(await on.openBy(instanceId)).toEqual([]);
      });

      it('grow and keep their snapshots while a guest has them open, and only then by its driver', async () => {
        const { on, hands } = offered() ?? {};
        if (on === undefined || hands === undefined) return expect(driver.volumes).toBeUndefined();
        const one = await on.make(volumeId(1));
        const other = await on.make(volumeId(2));
        const wanted = spec('obedient', { volumes: [one] });
        const { instanceId } = wanted;
        await create(wanted);
        const { sizeBytes } = await on.look(one.volumeId);
        await hands.grow(instanceId, one.volumeId, 2 * sizeBytes);
        await hands.grow(instanceId, one.volumeId, sizeBytes);
        expect((await on.look(one.volumeId)).sizeBytes).toBe(2 * sizeBytes);
        for (const _ of [1, 2]) await hands.snapshot(instanceId, one.volumeId, 'make', 'a');
        expect((await on.look(one.volumeId)).snapshots).toEqual(['a']);
        for (const _ of [1, 2]) await hands.snapshot(instanceId, one.volumeId, 'remove', 'a');
        expect((await on.look(one.volumeId)).snapshots).toEqual([]);
        expect(await fails(hands.grow(instanceId, other.volumeId, 2 * sizeBytes))).toBe('NotPossible');
        await driver.stop(instanceId, 0);
        expect(await fails(hands.grow(instanceId, one.volumeId, 4 * sizeBytes))).toBe('NotPossible');
        expect(await fails(hands.snapshot(instanceId, one.volumeId, 'make', 'b'))).toBe('NotPossible');
        await driver.remove(instanceId);
        expect(await fails(hands.grow(instanceId, one.volumeId, 4 * sizeBytes))).toBe('NoSuchGuest');
        expect(await fails(hands.set(instanceId, [], never))).toBe('NoSuchGuest');
      });
    });

    describe('the port of a runner', () => {
      /** What the host and its driver have for it; undefined: neither has any. */
      const offered = async () => {
        const { openRunner } = driver.access ?? {};
        expect(openRunner === undefined).toBe(host.makeRunDisk === undefined);
        expect(driverFacts.find(({ name: each }) => each === driver.name)?.runs).toBe(openRunner !== undefined);
        return openRunner && host.makeRunDisk && { openRunner, runDisk: await host.makeRunDisk() };
      };
      const closed = async (port: Duplex): Promise<void> => {
        port.resume();
        if (!port.closed) await once(port, 'close');
      };

      it('is refused, with its disk, where guests can have no program', async () => {
        if ((await offered()) !== undefined) return expect(driver.access?.openRunner).toBeDefined();
        const wanted = spec('obedient', { runDisk: '/nowhere/run.img' });
        expect(await fails(create(wanted))).toBe('NotPossible');
        expect(await host.runningCopies(wanted.instanceId)).toBe(0);
      });

      it('is opened by one at a time, again and again, also by the next agent and after a restart', async () => {
        const runs = await offered();
        if (runs === undefined) return expect(driver.access?.openRunner).toBeUndefined();
        const { openRunner, runDisk } = runs;
        const wanted = spec('obedient', { runDisk });
        const { instanceId } = wanted;
        await create(wanted);
        for (const _ of [1, 2]) {
          const port = await openRunner(instanceId);
          expect(await fails(openRunner(instanceId))).toBe('NotPossible');
          port.destroy();
          await closed(port);
        }
        const left = await openRunner(instanceId);
        await driver.close();
        left.destroy();
        await open();
        const next = await driver.access?.openRunner?.(instanceId);
        expect(next?.destroyed).toBe(false);
        await driver.stop(instanceId, 0);
        if (next !== undefined) await closed(next);
        expect(await fails(Promise.resolve(driver.access?.openRunner?.(instanceId)))).toBe('NotPossible');
        await driver.start(instanceId);
        const again = await driver.access?.openRunner?.(instanceId);
        await driver.remove(instanceId);
        if (again !== undefined) await closed(again);
        expect(await host.traces(instanceId)).toEqual([]);
      });

      it('is there for guests with a program only', async () => {
        const runs = await offered();
        if (runs === undefined) return expect(driver.access?.openRunner).toBeUndefined();
        const wanted = spec('obedient');
        expect(await fails(runs.openRunner(wanted.instanceId))).toBe('NoSuchGuest');
        await create(wanted);
        expect(await fails(runs.openRunner(wanted.instanceId))).toBe('NotPossible');
      });

      it('comes with a disk that must be there', async () => {
        const runs = await offered();
        if (runs === undefined) return expect(driver.access?.openRunner).toBeUndefined();
        const wanted = spec('obedient', { runDisk: `${runs.runDisk}.missing` });
        expect(await fails(create(wanted))).toBe('Internal');
        expect(await host.runningCopies(wanted.instanceId)).toBe(0);
        await create({ ...wanted, runDisk: runs.runDisk });
        expect(find(wanted.instanceId)?.state).toBe('running');
      });
    });

    it('tells watchers of every change until they no longer want to hear', async () => {
      const wanted = spec('obedient');
      const heard = new Set<string>();
      const ears = new AbortController();
      driver.watch((instanceId) => heard.add(`${instanceId} ${find(instanceId)?.state ?? 'absent'}`), ears.signal);
      await create(wanted);
      await driver.stop(wanted.instanceId, 0);
      await driver.remove(wanted.instanceId);
      for (const state of ['preparing', 'running', 'stopped', 'absent'])
        expect(heard).toContain(`${wanted.instanceId} ${state}`);
      ears.abort();
      heard.clear();
      await create(spec('obedient'));
      expect(heard).toEqual(new Set());
    });
  });
  test(`${name} passes over cases that there are`, () =>
    expect(Object.keys(cannot).filter((title) => !titles.has(title))).toEqual([]));
}

/** Resolves when `what` is true of the guest, at once or after some change. */
export function untilGuest(
  driver: Driver,
  instanceId: string,
  what: (guest: Guest | undefined) => boolean,
): Promise<Guest | undefined> {
  return new Promise((resolve) => {
    const done = new AbortController();
    const look = (): void => {
      const guest = driver.guests().find((each) => each.instanceId === instanceId);
      if (done.signal.aborted || !what(guest)) return;
      done.abort();
      resolve(guest);
    };
    driver.watch((changed) => {
      if (changed === instanceId) look();
    }, done.signal);
    look();
  });
}

const anyImage: ImageSpec = {
  source: 'file:///nowhere',
  decompress: 'none',
  format: 'raw',
  nocloud: true,
  architecture: 'amd64',
  aliases: [],
  preload: false,
  defaults: {},
};
