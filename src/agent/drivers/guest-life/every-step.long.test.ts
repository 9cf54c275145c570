// Agents that die at every step of what they do to guests of QEMU and of libvirt, and the next one, which finds what is left.

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Clock } from '../../../base/clock.ts';
import { newId } from '../../../base/ids.ts';
import { seededPrng } from '../../../base/prng.ts';
import { systemClock } from '../../../base/system.ts';
import { atEveryStep } from '../../test-every-step.ts';
import type { Life } from '../../test-life.ts';
import { type ConformanceHost, type ConformanceVolumes, untilGuest } from '../conformance.ts';
import type { Driver, Guest, GuestSpec } from '../driver.ts';
import { makeLibvirtTestHost } from '../libvirt/test-host.ts';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from '../libvirt/test-libvirt.ts';
import type { ProcessIdentity } from '../../host/processes.ts';
import { makeQemuTestHost, testPortRange, testSpec, testUsers } from '../qemu/test-host.ts';
import type { PortRange } from './ways-in/ports.ts';
import { libvirtTalk, qmpTalk } from '../test-engine-talks.ts';

const never = new AbortController().signal;
const ids = seededPrng(1, 'every step');
const ready = (seen?: Guest): boolean => seen?.ready === true;

interface Host extends ConformanceHost {
  readonly directory: string;
  readonly guestVolumes: ConformanceVolumes;
  open(change?: { readonly clock?: Clock; readonly portRange?: PortRange }): Driver;
  process(instanceId: string): Promise<ProcessIdentity | null>;
}

/** What was found must be more than files. */
const qemuSteps = [
  /^start setpriv/,
  /^run prlimit .*create/,
  /^run prlimit .*convert/,
  /system_powerdown/,
  /ask for quit/,
];
const libvirtSteps = [
  /domainDefine/,
  /domainCreate/,
  /hostfwd_add/,
  /domainShutdown/,
  /domainDestroy/,
  /domainUndefine/,
];

/** All but what libvirt is asked for: the same code as with QEMU, where it is tried. */
const alike = /^(?!ask for )/;

/** Hosts that are there at the same time are to have ports of their own: a guest that lost its port is another story. */
let hosts = 0;
function nextPorts(): PortRange {
  const first = testPortRange.first + (hosts++ % 10) * 10;
  return { first, last: first + 9 };
}

/** What is asked for in the life of one guest, in this order. */
const wishes = ['create', 'stop', 'copy', 'start', 'remove'] as const;
type Wish = (typeof wishes)[number];

describe('an agent that dies at any step of what it does to a guest of QEMU', () => {
  everyStepOf('QEMU');
});
const why = whyNoLibvirt();
describe.skipIf(why !== undefined)(
  `an agent that dies at any step of what it does to a guest of libvirt${why ? ` (${why})` : ''}`,
  () => {
    everyStepOf('libvirt');
  },
);

function everyStepOf(kind: 'QEMU' | 'libvirt'): void {
  const talks = kind === 'QEMU' ? [qmpTalk] : [libvirtTalk];
  let daemon: TestLibvirt | undefined;
  beforeAll(async () => {
    if (kind === 'libvirt') daemon = await startLibvirt();
  });
  afterAll(() => daemon?.stop());

  /** Of its own for each life, as there is one agent of a host. */
  const onHost = async (act: (host: Host) => Promise<void>): Promise<void> => {
    const made = daemon === undefined ? await makeHostOfUsers() : await makeLibvirtTestHost(daemon);
    const portRange = nextPorts();
    const host: Host = { ...made, open: (change) => made.open({ portRange, ...change }) };
    const driver = host.open();
    try {
      await act(host);
      await driver.recover();
      for (const { instanceId } of driver.guests()) {
        await driver.remove(instanceId);
        expect(await host.traces(instanceId)).toEqual([]);
      }
      expect(await readdir(host.directory)).toEqual([]);
    } finally {
      for (const { instanceId } of driver.guests()) await driver.remove(instanceId);
      await driver.close();
      await host.dispose();
    }
  };
  const filesOf = (host: Host, instanceId: string): Promise<string[]> =>
    readdir(join(host.directory, instanceId), { recursive: true }).then(
      (names) => names.sort(),
      () => [],
    );
  const boots = async (driver: Driver, instanceId: string): Promise<number> => {
    const { data } = await driver.readLog(instanceId, 0, 65_536);
    return new TextDecoder().decode(data).match(/boot/g)?.length ?? 0;
  };
  const specOn = async (host: Host): Promise<GuestSpec> =>
    testSpec({
      instanceId: newId('inst', systemClock.nowMs(), ids),
      ports: [{ guestPort: 22, hostPort: 0, protocol: 'tcp' }],
      volumes: [await host.guestVolumes.make(`vol_${'1'.repeat(26)}`)],
    });
  const carryOut = async (driver: Driver, wish: Wish, spec: GuestSpec): Promise<void> => {
    const { instanceId } = spec;
    if (wish === 'create') await driver.create(spec, never);
    if (wish === 'start') await driver.start(instanceId);
    if (wish === 'create' || wish === 'start') await untilGuest(driver, instanceId, ready);
    if (wish === 'stop') await driver.stop(instanceId, 60_000);
    if (wish === 'copy') await (await driver.exportDisk?.(instanceId, never))?.file.close();
    if (wish === 'remove') await driver.remove(instanceId);
  };
  /** The next one, which is let live. */
  const next = async (host: Host, act: (driver: Driver) => Promise<unknown>): Promise<void> => {
    const driver = host.open();
    try {
      await driver.recover();
      await act(driver);
    } finally {
      await driver.close();
    }
  };

  it('is followed by one that finishes it, with one guest that runs as long as it should, and nothing left over', async () => {
    /** After each wish, when no agent died. */
    const files = new Map<Wish, readonly string[]>();
    await onHost(async (host) => {
      const spec = await specOn(host);
      for (const wish of wishes) {
        await next(host, (driver) => carryOut(driver, wish, spec));
        files.set(wish, await filesOf(host, spec.instanceId));
      }
    });
    const attempt = async (host: Host, life: Life): Promise<void> => {
      const spec = await specOn(host);
      const { instanceId } = spec;
      let wish: Wish = 'create';
      await life.live(async () => {
        const driver = host.open({ clock: life.clock });
        await driver.recover();
        for (wish of wishes) await carryOut(driver, wish, spec);
      });
      await life.kill();
      const ran = await host.process(instanceId);
      await next(host, async (driver) => {
        const guest = () => driver.guests().find((each) => each.instanceId === instanceId);
        const ends = wish === 'stop' || wish === 'remove';
        if (ran !== null && !ends) expect(guest()?.state).toBe('running');
        if (wish !== 'copy') await carryOut(driver, wish, spec); // the next agent is not asked for the copy
        if (wish === 'remove') return expect(await host.traces(instanceId)).toEqual([]);
        const runs = wish === 'create' || wish === 'start';
        expect(guest()).toMatchObject({ state: runs ? 'running' : 'stopped', volumes: [`vol_${'1'.repeat(26)}`] });
        expect(await host.runningCopies(instanceId)).toBe(runs ? 1 : 0);
        expect(await host.portTaken(guest()?.ports[0]?.hostPort ?? 0)).toBe(runs);
        if (ran !== null && runs) expect(await host.process(instanceId)).toEqual(ran);
        expect(await boots(driver, instanceId)).toBe(wish === 'start' ? 2 : 1);
      });
      expect(await filesOf(host, instanceId)).toEqual(files.get(wish));
      await next(host, (driver) => driver.remove(instanceId));
      const volume = await stat(spec.volumes?.[0]?.path ?? '');
      expect([volume.uid, volume.gid]).toEqual([0, 0]);
    };
    const steps = await atEveryStep((life) => onHost((host) => attempt(host, life)), {
      talks,
      atOnce: 3,
      ...(kind === 'libvirt' ? { alike } : {}),
    });
    for (const each of kind === 'QEMU' ? qemuSteps : libvirtSteps)
      expect(steps).toContainEqual(expect.stringMatching(each));
  }, 600_000);

  it('of a launch is followed by one that leaves nothing, where nobody wants the guest any more', async () => {
    const attempt = async (host: Host, life: Life): Promise<void> => {
      const spec = await specOn(host);
      const { instanceId } = spec;
      await life.live(async () => {
        const driver = host.open({ clock: life.clock });
        await driver.recover();
        await driver.create(spec, never);
      });
      await life.kill();
      await next(host, async (driver) => {
        await driver.remove(instanceId);
        expect(driver.guests()).toEqual([]);
        expect(await host.traces(instanceId)).toEqual([]);
      });
      const volume = await stat(spec.volumes?.[0]?.path ?? '');
      expect([volume.uid, volume.gid]).toEqual([0, 0]);
    };
    await atEveryStep((life) => onHost((host) => attempt(host, life)), {
      talks,
      atOnce: 3,
      ...(kind === 'libvirt' ? { alike } : {}),
    });
  }, 600_000);
  it.each([
    ['panicking', { state: 'failed', reason: { code: 'GuestPanicked' } }] as const,
    // libvirt itself remembers who powered off.
    ...(kind === 'QEMU' ? [['short-lived', { state: 'exited', reason: { code: 'GuestShutdown' } }] as const] : []),
  ])(
    'of the end of a guest that is %s is followed by one that knows how it ended',
    async (imageName, told) => {
      const attempt = async (host: Host, life: Life): Promise<void> => {
        const spec = { ...(await specOn(host)), imageName };
        const { instanceId } = spec;
        const untilOver = async (driver: Driver): Promise<Guest | undefined> => {
          await driver.create(spec, never);
          return untilGuest(driver, instanceId, (seen) => seen?.state === 'failed' || seen?.state === 'exited');
        };
        await life.live(async () => {
          const driver = host.open({ clock: life.clock });
          await driver.recover();
          await untilOver(driver);
        });
        await life.kill();
        await next(host, async (driver) => {
          expect(await untilOver(driver)).toMatchObject(told);
          expect(await host.runningCopies(instanceId)).toBe(0);
          expect(await boots(driver, instanceId)).toBe(1);
        });
      };
      await atEveryStep((life) => onHost((host) => attempt(host, life)), {
        talks,
        atOnce: 3,
        alike: /^(?!rename guest.json$|ask for (quit|domainDestroy)$)/,
      });
    },
    600_000,
  );

  it('of a suspension is followed by one that finds the guest as it is, in its one life, and makes it as it was to be', async () => {
    const attempt = async (host: Host, life: Life): Promise<void> => {
      const spec = await specOn(host);
      const { instanceId } = spec;
      await next(host, (driver) => carryOut(driver, 'create', spec));
      const ran = await host.process(instanceId);
      const asked = ['suspend', 'resume', 'suspend', 'stop'] as const;
      let wish: (typeof asked)[number] = 'suspend';
      const carryOutThis = async (driver: Driver): Promise<void> => {
        if (wish === 'stop') await driver.stop(instanceId, 60_000);
        else await driver.suspension?.[wish](instanceId);
      };
      await life.live(async () => {
        const driver = host.open({ clock: life.clock });
        await driver.recover();
        for (wish of asked) await carryOutThis(driver);
      });
      await life.kill();
      await next(host, async (driver) => {
        await carryOutThis(driver);
        const state = { suspend: 'suspended', resume: 'running', stop: 'stopped' }[wish];
        expect(driver.guests()).toMatchObject([{ instanceId, state }]);
        expect(await host.process(instanceId)).toEqual(wish === 'stop' ? null : ran);
        expect(await boots(driver, instanceId)).toBe(1);
      });
      const still = (): boolean | undefined => (wish === 'stop' ? undefined : wish === 'suspend');
      if (still() !== undefined) expect(await host.outside?.standsStill(instanceId)).toBe(still());
    };
    const steps = await atEveryStep((life) => onHost((host) => attempt(host, life)), {
      talks,
      atOnce: 3,
      ...(kind === 'libvirt' ? { alike } : {}),
    });
    const asked = kind === 'QEMU' ? [/ask for stop/, /ask for cont/] : [/domainSuspend/, /domainResume/];
    for (const each of asked) expect(steps).toContainEqual(expect.stringMatching(each));
  }, 600_000);
}

async function makeHostOfUsers(): Promise<Host> {
  const made = await makeQemuTestHost();
  return { ...made, open: (change) => made.open({ ...testUsers, ...change }) };
}
