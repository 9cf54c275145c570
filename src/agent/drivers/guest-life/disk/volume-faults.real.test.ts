import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { system } from '../../../../base/system.ts';
import { type ConformanceHost, type ConformanceVolumes, untilGuest } from '../../conformance.ts';
import type { Driver, Guest, GuestVolume, GuestVolumes } from '../../driver.ts';
import { makeLibvirtTestHost } from '../../libvirt/test-host.ts';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from '../../libvirt/test-libvirt.ts';
import type { ProcessIdentity } from '../../../host/processes.ts';
import { makeQemuTestHost, testSpec, testUsers } from '../../qemu/test-host.ts';

const never = new AbortController().signal;
const spec = testSpec();
const id = spec.instanceId;
const [one, two] = [`vol_${'1'.repeat(26)}`, `vol_${'2'.repeat(26)}`];

interface Host extends ConformanceHost {
  readonly directory: string;
  readonly imageDirectory: string;
  readonly guestVolumes: ConformanceVolumes;
  process(instanceId: string): Promise<ProcessIdentity | null>;
}

describe('volumes of guests of QEMU, when things go wrong', () => {
  faultsOf('QEMU');

  // Needs the right to mount.
  it.skipIf(system.userId() !== 0)(
    'say that no room is left for a snapshot while a guest runs, and have it later',
    async () => {
      const host = await makeQemuTestHost();
      const driver = host.open(testUsers);
      const directory = dirname(dirname(host.volumeFiles.pathOf(one)));
      const mount = (...words: string[]) => expect(spawnSync('mount', words).status).toBe(0);
      mount('-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', directory);
      try {
        const volume = await host.guestVolumes.make(one);
        await driver.recover();
        await driver.create({ ...spec, volumes: [volume] }, never);
        await writeFile(join(directory, 'filler'), new Uint8Array(4 * 1024 * 1024)).catch(() => {}); // all there is
        await expect(driver.volumes?.snapshot(id, one, 'make', 'a')).rejects.toMatchObject({ code: 'DiskFull' });
        expect(await host.guestVolumes.look(one)).toMatchObject({ snapshots: [] });
        await rm(join(directory, 'filler'));
        await driver.volumes?.snapshot(id, one, 'make', 'a');
        expect(await host.guestVolumes.look(one)).toMatchObject({ snapshots: ['a'] });
      } finally {
        await driver.remove(id);
        await driver.close();
        spawnSync('umount', [directory]);
        await host.dispose();
      }
    },
  );
});
const why = whyNoLibvirt();
describe.skipIf(why !== undefined)(
  `volumes of guests of libvirt, when things go wrong${why ? ` (${why})` : ''}`,
  () => {
    faultsOf('libvirt');
  },
);

async function makeHostOfUsers(): Promise<Host> {
  const made = await makeQemuTestHost();
  return { ...made, open: () => made.open(testUsers) };
}

function faultsOf(kind: 'QEMU' | 'libvirt'): void {
  let daemon: TestLibvirt | undefined;
  let host: Host;
  let driver: Driver;
  let opened: Driver[];
  beforeAll(async () => {
    if (kind === 'libvirt') daemon = await startLibvirt();
  });
  afterAll(() => daemon?.stop());

  const open = async (): Promise<Driver> => {
    driver = host.open();
    opened.push(driver);
    await driver.recover();
    return driver;
  };
  const guest = (): Guest | undefined => driver.guests().find((each) => each.instanceId === id);
  const hands = (): GuestVolumes => driver.volumes ?? expect.unreachable();
  const openBy = () => host.guestVolumes.openBy(id);
  const recordPath = () => join(host.directory, id, 'guest.json');
  const editRecord = async (change: (record: Record<string, unknown>) => void): Promise<void> => {
    const record = JSON.parse(await readFile(recordPath(), 'utf8'));
    change(record);
    await writeFile(recordPath(), JSON.stringify(record));
  };

  beforeEach(async () => {
    host = daemon === undefined ? await makeHostOfUsers() : await makeLibvirtTestHost(daemon);
    opened = [];
    await open();
  });
  afterEach(async () => {
    for (const each of driver.guests()) await driver.remove(each.instanceId);
    for (const each of opened) await each.close();
    await host.dispose();
  });

  it('stay with a guest that is suspended, which is not asked before it goes on', async () => {
    const volume = await host.guestVolumes.make(one);
    await driver.create({ ...spec, volumes: [volume] }, never);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    await driver.suspension?.suspend(id);
    await expect(driver.volumes?.set(id, [], never)).rejects.toMatchObject({
      code: 'NotPossible',
      message: expect.stringContaining('the guest is suspended'),
    });
    expect(driver.guests().find(({ instanceId }) => instanceId === id)?.volumes).toEqual([one]);
    await driver.suspension?.resume(id);
    // This guest knows no hotplug.
    await expect(driver.volumes?.set(id, [], never)).rejects.toThrow('did not let go');
    await driver.stop(id, 60_000);
    await driver.volumes?.set(id, [], never);
    expect(driver.guests().find(({ instanceId }) => instanceId === id)?.volumes ?? []).toEqual([]);
  });

  describe('an agent that is killed while it changes them', () => {
    /** The agent dies as soon as the record of its guest has been written so often since it began. */
    const killAfterWrites = async (writes: number, wanted: readonly GuestVolume[]): Promise<void> => {
      const agent = spawn(
        system.nodePath(),
        [
          fileURLToPath(new URL('./test-volume-agent.ts', import.meta.url)),
          host.directory,
          host.imageDirectory,
          id,
          JSON.stringify(wanted),
          daemon === undefined ? '' : `qemu:///system?socket=${daemon.path}`,
        ],
        { stdio: ['ignore', 'pipe', 'inherit'], detached: true },
      );
      const exited = once(agent, 'exit');
      let seen = 0;
      for await (const line of createInterface({ input: agent.stdout })) {
        if (line === 'changed' && ++seen === writes) break;
        if (line === 'done') break;
      }
      system.signal(-(agent.pid ?? 0), 'SIGKILL');
      await exited;
    };

    // Giving a guest two volumes writes its record twice: before it gets each.
    it.each([1, 2, 3])(
      'after change %i of its record leaves a guest that the next one gives what it is to have',
      async (writes) => {
        const [first, second] = [await host.guestVolumes.make(one), await host.guestVolumes.make(two)];
        await driver.create(spec, never);
        await untilGuest(driver, id, (seen) => seen?.ready === true);
        await driver.close();
        await killAfterWrites(writes, [first, second]);
        await open();
        // Never more than it is said to have.
        for (const volumeId of await openBy()) expect(guest()?.volumes).toContain(volumeId);
        await hands().set(id, [first, second], never);
        expect(await openBy()).toEqual([one, two]);
        expect(guest()).toMatchObject({ state: 'running', volumes: [one, two] });
      },
    );
  });

  it('are seen by the next agent also where the record does not name them', async () => {
    const volume = await host.guestVolumes.make(one);
    await driver.create({ ...spec, volumes: [volume] }, never);
    await driver.close();
    await editRecord((record) => {
      delete record['volumes'];
    });
    await open();
    expect(guest()?.volumes).toEqual([one]);
    await hands().set(id, [volume], never);
    expect(await openBy()).toEqual([one]);
  });

  it('are given anew where the record names one that the guest does not have', async () => {
    const volume = await host.guestVolumes.make(one);
    await driver.create(spec, never);
    await driver.close();
    await editRecord((record) => Object.assign(record, { volumes: [volume] }));
    await open();
    expect(await openBy()).toEqual([]);
    await hands().set(id, [volume], never);
    expect(await openBy()).toEqual([one]);
  });

  it('are refused to a second guest by the file’s own lock, cold and hot, and the first keeps its own', async () => {
    // Where guests run as users of their own, it is not even given to another's.
    const refusal = /lock|has it; take it from that one first/;
    const volume = await host.guestVolumes.make(one);
    await driver.create({ ...spec, volumes: [volume] }, never);
    const other = testSpec({ instanceId: 'inst_00000000000000000000000002', volumes: [volume] });
    await expect(driver.create(other, never)).rejects.toMatchObject({
      code: expect.stringMatching(/^(HypervisorFailed|NotPossible)$/),
      message: expect.stringMatching(refusal),
    });
    await driver.remove(other.instanceId);
    const { volumes: _volumes, ...without } = other;
    await driver.create(without, never);
    await expect(hands().set(other.instanceId, [volume], never)).rejects.toMatchObject({
      code: 'NotPossible',
      message: expect.stringMatching(refusal),
    });
    expect(driver.guests().find((each) => each.instanceId === other.instanceId)?.volumes).toBeUndefined();
    expect(await openBy()).toEqual([one]);
  });

  it('that are missing are told by name, and the others are given all the same', async () => {
    const volume = await host.guestVolumes.make(one);
    await driver.create(spec, never);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    const missing = { ...volume, volumeId: two, name: 'gone', path: volume.path.replace(one, two) };
    await expect(hands().set(id, [missing, volume], never)).rejects.toMatchObject({
      code: 'NotPossible',
      message: expect.stringMatching(/"gone".*No such file/),
    });
    expect(guest()?.volumes).toEqual([one]);
    expect(await openBy()).toEqual([one]);
  });

  it('stay with a guest whose QEMU is killed, for its next start', async () => {
    const volume = await host.guestVolumes.make(one);
    await driver.create({ ...spec, volumes: [volume] }, never);
    await host.kill(id);
    expect(await untilGuest(driver, id, (seen) => seen?.state === 'failed')).toMatchObject({ volumes: [one] });
    await driver.start(id);
    expect(await openBy()).toEqual([one]);
  });

  it.runIf(kind === 'libvirt')('come and grow while libvirtd is started anew, and are found by it', async () => {
    const [first, second] = [await host.guestVolumes.make(one), await host.guestVolumes.make(two)];
    await driver.create({ ...spec, volumes: [first] }, never);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    let coming: Promise<void> | undefined;
    await daemon?.restart(async () => {
      coming = hands().set(id, [first, second], never);
    });
    await coming;
    expect(guest()?.volumes).toEqual([one, two]);
    expect(await openBy()).toEqual([one, two]);
    await hands().grow(id, one, 4 * 1024 * 1024);
    expect(await host.guestVolumes.look(one)).toMatchObject({ sizeBytes: 4 * 1024 * 1024 });
  });

  it('of a QEMU that hangs are not changed, and it is said so', async () => {
    const volume = await host.guestVolumes.make(one);
    await driver.create(spec, never);
    const process = await host.process(id);
    system.signal(process?.pid ?? 0, 'SIGSTOP');
    await expect(hands().set(id, [volume], never)).rejects.toMatchObject({
      code: expect.stringMatching(/^(NotPossible|HypervisorFailed)$/),
    });
    const told = guest()?.volumes ?? [];
    system.signal(process?.pid ?? 0, 'SIGCONT');
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    // What was asked for meanwhile may be done only now, and is in the way until it is.
    const refused = (): Promise<boolean> =>
      hands()
        .set(id, [volume], never)
        .then(
          () => false,
          () => true,
        );
    while (await refused())
      for (const volumeId of await openBy()) expect([...told, ...(guest()?.volumes ?? [])]).toContain(volumeId);
    expect(await openBy()).toEqual([one]);
  });
}
