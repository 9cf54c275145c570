// The zones driver, command by command: what it asks of the host, what it does when a command fails or the agent dies at it, and what it
// leaves alone.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { untilGuest } from '../conformance.ts';
import type { Driver, Guest, GuestSpec } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { guestUuid } from '../guest-life/guest-files.ts';
import type { ToolCall, ToolResult } from '../../host/run-tool.ts';
import { makeRecordedHost, type RecordedHost } from './test-recorded-host.ts';

const never = new AbortController().signal;
const id = 'inst_00000000000000000000000001';
const zone = `berth-${id}`;
const uuid = guestUuid(id, 1);
const spec: GuestSpec = {
  instanceId: id,
  incarnation: 1,
  name: 'web-1',
  hostname: 'web-1',
  cpus: 2,
  memoryMiB: 64,
  diskGiB: 0,
  imageName: 'obedient',
  image: {
    source: 'file:///nowhere',
    decompress: 'none',
    format: 'raw',
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
const list = 'zoneadm list -cp';
const volumesOf = 'zfs list -H -p -r -t volume,snapshot -o name,volsize,clones,berth:guest,berth:image rpool/berth';
const imageVolume = `rpool/berth/image-${'0'.repeat(32)}`;
const disk = `rpool/berth/disk-${id}`;
const boots = 'kstat -p unix:0:system_misc:boot_time';
const mount = 'zfs list -H -o mountpoint rpool/berth';

describe('the zones driver', () => {
  let host: RecordedHost;
  let driver: Driver;
  let opened: Driver[];

  const open = async (change: Parameters<RecordedHost['open']>[0] = {}): Promise<Driver> => {
    driver = host.open(change);
    opened.push(driver);
    await driver.recover();
    return driver;
  };
  const guest = (): Guest | undefined => driver.guests().find(({ instanceId }) => instanceId === id);
  const create = (change: Partial<GuestSpec> = {}): Promise<void> => driver.create({ ...spec, ...change }, never);
  const ready = (): Promise<Guest | undefined> => untilGuest(driver, id, (seen) => seen?.ready === true);
  const state = (wanted: string): Promise<Guest | undefined> =>
    untilGuest(driver, id, (seen) => seen?.state === wanted);
  /** What was asked while `act` ran, but for the looks that only time brings. */
  const asking = async (act: () => Promise<unknown>): Promise<string[]> => {
    const from = host.asked.length;
    await act();
    return host.asked.slice(from).map((each) => each.replaceAll(host.directory, 'DIRECTORY'));
  };
  const failure = async (act: Promise<unknown>): Promise<DriverError> => {
    const error: unknown = await act.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (error instanceof DriverError) return error;
    throw new Error(`no driver error, but ${String(error)}`);
  };

  beforeEach(async () => {
    host = await makeRecordedHost();
    opened = [];
    await open({ lookEveryMs: 3_600_000 }); // time brings no looks
  });
  afterEach(async () => {
    for (const each of opened) await each.close();
    await host.dispose();
  });

  describe('asks', () => {
    const fill = [
      `zfs create -s -o berth:image=sha256:${'0'.repeat(64)} -V 2097152 ${imageVolume}`,
      expect.stringMatching(`^dd if=.*/images/obedient of=/dev/zvol/rdsk/${imageVolume} bs=1048576 conv=sync$`),
      `zfs snapshot ${imageVolume}@ready`,
    ];
    const clone = `zfs clone -o berth:guest=${uuid} ${imageVolume}@ready ${disk}`;
    const bootAnew = [
      list, // is there one of an agent that died?
      boots,
      list,
      mount,
      `zonecfg -z ${zone} -f DIRECTORY/${id}/zone.cfg`,
      `zoneadm -z ${zone} install`,
      `zoneadm -z ${zone} boot`,
      list,
    ];

    it('for the first guest of an image: its volume, a clone, a zone', async () => {
      expect(await asking(create)).toEqual([volumesOf, volumesOf, ...fill, clone, ...bootAnew]);
      expect(host.volumes.get(disk)).toMatchObject({ content: 'obedient', sizeBytes: 2_097_152 });
    });

    it('for the next one only for a clone and a zone', async () => {
      await create();
      const other = 'inst_00000000000000000000000002';
      const asked = await asking(() => create({ instanceId: other }));
      expect(asked.filter((each) => each.startsWith('zfs'))).toEqual([
        volumesOf,
        clone.replaceAll(id, other).replace(uuid, guestUuid(other, 1)),
      ]);
      await driver.remove(other);
    });

    it('for a larger disk when one is asked for', async () => {
      expect(await asking(() => create({ diskGiB: 2 }))).toContain(`zfs set volsize=2147483648 ${disk}`);
      expect(host.volumes.get(disk)?.sizeBytes).toBe(2 * 1024 ** 3);
    });

    it('qemu-img for an image that is not raw, and takes its file away', async () => {
      const asked = await asking(() => create({ imageName: 'packed' }));
      const volume = `image-${'3'.repeat(32)}`;
      expect(asked.filter((each) => /^(qemu-img|dd)/.test(each))).toEqual([
        expect.stringMatching(`^qemu-img convert -f qcow2 -O raw .*/packed DIRECTORY/${volume}.raw$`),
        `dd if=DIRECTORY/${volume}.raw of=/dev/zvol/rdsk/rpool/berth/${volume} bs=1048576 conv=sync`,
      ]);
      expect(await asking(() => ready())).toEqual([]);
      await driver.close();
      await open(); // nothing but the guest is in the folder
      expect(driver.guests()).toHaveLength(1);
    });

    it('to stop: the power button, and halts after the grace', async () => {
      await create({ imageName: 'stubborn' });
      await ready();
      const asked = await asking(() => driver.stop(id, 50));
      const spoken = asked.filter((each) => each !== list);
      expect(spoken).toEqual([`pkill -TERM -z ${zone} bhyve`, `zoneadm -z ${zone} halt`]);
    });

    it('to stop without grace: halts', async () => {
      await create();
      expect(await asking(() => driver.stop(id, 0))).toEqual([list, `zoneadm -z ${zone} halt`, list]);
    });

    it('to start again: boots', async () => {
      await create();
      await driver.stop(id, 0);
      const asked = await asking(() => driver.start(id));
      expect(asked).toEqual([list, boots, list, `zonecfg -z ${zone} export`, `zoneadm -z ${zone} boot`, list]);
    });

    it('to remove: takes the zone back step by step, then the disk; the image stays for the next', async () => {
      await create();
      expect(await asking(() => driver.remove(id))).toEqual([
        ...[list, `zoneadm -z ${zone} halt`, list],
        ...[list, `zonecfg -z ${zone} export`, `zoneadm -z ${zone} uninstall -F`, `zonecfg -z ${zone} delete -F`],
        ...[volumesOf, `zfs destroy -r ${disk}`],
      ]);
      expect([...host.volumes.keys()]).toEqual([imageVolume, `${imageVolume}@ready`]);
    });

    it('to take the volumes of images that no guest uses when room for another is needed', async () => {
      await create({ imageName: 'stubborn' });
      const used = `rpool/berth/image-${'1'.repeat(32)}`;
      const [second, third] = ['inst_00000000000000000000000002', 'inst_00000000000000000000000003'];
      await create({ instanceId: second });
      await driver.remove(second);
      const asked = await asking(() => create({ instanceId: third, imageName: 'packed' }));
      expect(asked.filter((each) => each.includes('destroy'))).toEqual([`zfs destroy -r ${imageVolume}`]);
      expect(host.volumes.has(used)).toBe(true);
      await driver.remove(third);
    });
  });

  it('gives twenty guests of one image their disks from one filling', async () => {
    const ids = Array.from({ length: 20 }, (_, i) => `inst_${String(i).padStart(26, '0')}`);
    await Promise.all(ids.map((instanceId) => create({ instanceId })));
    expect(host.asked.filter((each) => each.startsWith('dd '))).toHaveLength(1);
    expect(new Set(ids.map((each) => host.volumes.get(`rpool/berth/disk-${each}`)?.origin))).toEqual(
      new Set([`${imageVolume}@ready`]),
    );
    await Promise.all(ids.map((instanceId) => driver.remove(instanceId)));
  });

  describe('does not stumble over itself', () => {
    const other = 'inst_00000000000000000000000002';
    /** Answers wait behind `gate`, whose `wait` goes before or after the host's own. */
    const openBehind = async (
      wait: (call: ToolCall) => { before?: Promise<void>; after?: Promise<void> },
    ): Promise<void> => {
      await driver.close();
      await open({
        lookEveryMs: 3_600_000,
        async run(call) {
          const { before, after } = wait(call);
          await before;
          const result = await host.run(call);
          await after;
          return result;
        },
      });
    };
    afterEach(async () => {
      for (const each of driver.guests()) await driver.remove(each.instanceId);
    });

    it('when an image was filled for one guest while another looked for it', async () => {
      const [gate, looking] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let lists = 0;
      await openBehind(({ arguments: words }) => {
        if (`zfs ${words.join(' ')}` !== volumesOf || ++lists > 1) return {};
        looking.resolve();
        return { after: gate.promise };
      });
      const slow = create();
      await looking.promise; // it has seen no image, and does not know yet
      await create({ instanceId: other });
      gate.resolve();
      await slow;
      expect(host.asked.filter((each) => each.startsWith('dd '))).toHaveLength(1);
      expect(await host.runningCopies(id)).toBe(1);
    });

    it('when those who wait for an image leave: the others get it, and the last one takes the copy back', async () => {
      const [copying, killed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let copies = 0;
      await driver.close();
      await open({
        lookEveryMs: 3_600_000,
        run(call) {
          if (call.program !== 'dd' || ++copies > 1) return host.run(call);
          copying.resolve();
          return new Promise((resolve) =>
            call.signal?.addEventListener('abort', () => {
              killed.resolve();
              resolve({ ok: false, reason: 'aborted', output: '' });
            }),
          );
        },
      });
      const [first, second] = [new AbortController(), new AbortController()];
      const waits = [
        failure(driver.create(spec, first.signal)),
        failure(driver.create({ ...spec, instanceId: other }, second.signal)),
      ];
      await copying.promise;
      await untilGuest(driver, other, (seen) => seen?.progress === 'making the disk');
      while (host.asked.filter((each) => each === volumesOf).length < 3)
        await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
      first.abort();
      expect(await waits[0]).toMatchObject({ code: 'Aborted' });
      second.abort();
      await killed.promise;
      expect(await waits[1]).toMatchObject({ code: 'Aborted' });
      expect([...host.volumes.keys()]).toEqual([]);
      await create();
      expect(await host.runningCopies(id)).toBe(1);
    });

    it('when the image of one guest is dropped for another in the moment it is wanted', async () => {
      await create();
      await driver.remove(id);
      const [gate, dropping, dropped] = [0, 1, 2].map(() => Promise.withResolvers<void>());
      await openBehind(({ arguments: words }) => {
        if (words.join(' ') === `destroy -r ${imageVolume}`) {
          dropping?.resolve();
          return { before: gate?.promise ?? Promise.resolve() };
        }
        if (words[0] === 'clone' && words.at(-1) === disk) return { before: dropped?.promise ?? Promise.resolve() };
        return {};
      });
      const making = create({ instanceId: other, imageName: 'packed' });
      await dropping?.promise;
      const wanting = create();
      await untilGuest(driver, id, (seen) => seen?.progress === 'making the disk');
      gate?.resolve();
      await making;
      dropped?.resolve();
      await wanting;
      expect(await host.runningCopies(id)).toBe(1);
    });
  });

  describe('when the agent dies or a command fails', () => {
    /** What a user does with a guest, from nothing to nothing. */
    const life = async (on: Driver): Promise<void> => {
      await on.create(spec, never);
      await on.stop(id, 0);
      await on.start(id);
      await on.remove(id);
    };
    const gone: ToolResult = { ok: false, reason: 'aborted', output: '' };
    const broken: ToolResult = { ok: false, reason: 'failed', exitCode: 1, output: 'it broke' };
    const commandsOfALife = async (): Promise<number> => {
      const from = host.asked.length;
      await life(driver);
      return host.asked.length - from;
    };
    /** A new agent finds what is left, makes the guest whole, and takes it away. */
    const mend = async (): Promise<void> => {
      await open();
      await create();
      // One that ended unseen is noted a moment after it was found.
      if ((await host.runningCopies(id)) === 0) await untilGuest(driver, id, (seen) => seen?.state !== 'running');
      expect(guest()?.state).not.toBe('preparing');
      if (guest()?.state !== 'running') await driver.start(id);
      expect(await host.runningCopies(id)).toBe(1);
      await driver.remove(id);
      expect(await host.traces(id)).toEqual([]);
      const images = [...host.volumes.keys()].filter((each) => !each.startsWith(imageVolume));
      expect(images).toEqual([]);
    };

    it('at any command, before it or after it, the next agent makes the guest whole and removes all of it', async () => {
      const count = await commandsOfALife();
      expect(count).toBeGreaterThan(25);
      let deaths = 0;
      for (let at = 0; at < count; at++) {
        for (const when of ['before', 'after'] as const) {
          for (const name of [...host.volumes.keys()].reverse())
            await host.run({ program: 'zfs', arguments: ['destroy', '-r', name], timeoutMs: 1 });
          await driver.close();
          await open({ lookEveryMs: 3_600_000 });
          const dying = driver;
          let number = 0;
          let dead = false;
          const die = (): ToolResult => {
            dead = true;
            void dying.close(); // from here on it writes nothing more, as if it had been killed
            return gone;
          };
          host.before = () => (dead || (when === 'before' && number++ === at) ? (dead ? gone : die()) : undefined);
          host.after = () => (!dead && when === 'after' && number++ === at ? die() : undefined);
          await life(dying).catch(() => {}); // a dead agent's errors do not count
          if (dead) deaths++;
          await dying.close();
          host.before = undefined;
          host.after = undefined;
          await mend();
        }
      }
      expect(deaths).toBe(2 * count);
    });

    it('at any command, before its effect or after it, the guest is failed or whole, and is removed or made whole by the next try', async () => {
      const count = await commandsOfALife();
      let failures = 0;
      for (let at = 0; at < count; at++) {
        for (const when of ['before', 'after'] as const) {
          let number = 0;
          const failing = (): ToolResult | undefined => {
            if (number++ !== at) return undefined;
            failures++;
            return broken;
          };
          host.before = when === 'before' ? failing : undefined;
          host.after = when === 'after' ? failing : undefined;
          await life(driver).catch((error: unknown) => expect(error).toBeInstanceOf(DriverError));
          host.before = undefined;
          host.after = undefined;
          const failed = guest()?.state === 'failed';
          if (failed) expect(await host.runningCopies(id)).toBe(0);
          await driver.close();
          await mend();
        }
      }
      expect(failures).toBeGreaterThan(1.5 * count);
    });
  });

  it.each([
    ['an installation', 'install', 'incomplete', ['uninstall -F', 'install', 'boot']],
    ['a boot', 'boot', 'ready', ['halt', 'boot']],
  ] as const)('goes on where %s was interrupted in its midst', async (_what, word, left, expected) => {
    let dead = false;
    host.before = (call) => {
      if (dead) return { ok: false, reason: 'aborted', output: '' };
      if (call.program !== 'zoneadm' || call.arguments[2] !== word) return undefined;
      host.leave(zone, left);
      dead = true;
      return { ok: false, reason: 'timeout', output: '' };
    };
    expect((await failure(create())).message).toMatch(/zoneadm did not end within \d+ ms/);
    host.before = undefined;
    await driver.close();
    await open({ lookEveryMs: 3_600_000 });
    const asked = await asking(create);
    const steps = asked.filter((each) => each.startsWith(`zoneadm -z ${zone} `));
    expect(steps).toEqual(expected.map((step) => `zoneadm -z ${zone} ${step}`));
    expect(await host.runningCopies(id)).toBe(1);
  });

  describe('says what is wrong', () => {
    it('when a program is missing', async () => {
      host.before = ({ program }) =>
        program === 'zonecfg' ? { ok: false, reason: 'missing', output: 'spawn zonecfg ENOENT' } : undefined;
      const error = await failure(create());
      expect(error).toMatchObject({ code: 'HypervisorFailed' });
      expect(error.message).toContain('zonecfg is not installed; bhyve zones need illumos with the bhyve brand');
      expect(guest()).toMatchObject({ state: 'failed', reason: { code: 'HypervisorFailed' } });
    });

    it.each([
      ['the pool', 'zfs', 'create', "cannot create 'rpool/berth/image': out of space"],
      ['the pool while the image is copied', 'dd', 'if=', 'dd: unexpected end: write: No space left on device'],
      ['the quota', 'zfs', 'clone', "cannot create 'rpool/berth/disk': disk quota exceeded"],
    ])('when %s is full, and keeps nothing half made', async (_what, program, word, output) => {
      host.before = (call) =>
        call.program === program && call.arguments[0]?.startsWith(word) === true
          ? { ok: false, reason: 'failed', exitCode: 1, output }
          : undefined;
      expect(await failure(create())).toMatchObject({ code: 'DiskFull' });
      host.before = undefined;
      expect([...host.volumes.keys()].filter((each) => !each.startsWith(imageVolume))).toEqual([]);
      expect(host.volumes.has(imageVolume)).toBe(host.volumes.has(`${imageVolume}@ready`));
      await create();
      expect(guest()?.state).toBe('running');
    });

    it('when ports are asked for, and names the field', async () => {
      const error = await failure(create({ ports: [{ guestPort: 80, hostPort: 8080, protocol: 'tcp' }] }));
      expect(error).toMatchObject({ code: 'HypervisorFailed' });
      expect(error.message).toContain('"ports" is not empty');
      expect(await host.traces(id)).toEqual(['folder', 'guest.json', 'guest.json.old']);
    });

    it('when more CPUs are asked for than bhyve has', async () => {
      expect((await failure(create({ cpus: 33 }))).message).toContain('"cpus" is 32 at most');
    });

    it('when a guest does not come up', async () => {
      host.after = ({ arguments: words }) => {
        if (words.at(-1) === 'boot') void host.kill(id); // bhyve ends at once
        return undefined;
      };
      const error = await failure(create());
      expect(error).toMatchObject({
        code: 'HypervisorFailed',
        message: `cannot start ${id}: zone ${zone} is down at once`,
      });
      expect(await host.runningCopies(id)).toBe(0);
    });

    it('when a guest is not seen at first, and then finds it all the same', async () => {
      await create();
      await driver.close();
      let blind = 2;
      host.before = (call) =>
        call.arguments.includes('export') && blind-- > 0 ? { ok: false, reason: 'timeout', output: '' } : undefined;
      await open();
      expect(guest()?.state).toBe('running');
      await driver.stop(id, 0);
      expect(await host.runningCopies(id)).toBe(0);
    });

    it('when zones cannot be seen, and then touches nothing', async () => {
      await create();
      await driver.close();
      host.before = () => ({ ok: false, reason: 'timeout', output: '' });
      driver = host.open();
      opened.push(driver);
      const error = await failure(driver.recover());
      expect(error.message).toBe('cannot look at the zones: zoneadm did not end within 60000 ms');
      expect(driver.guests()).toEqual([]);
      host.before = undefined;
      await driver.recover();
      expect(guest()?.state).toBe('running');
    });

    it.each([
      [
        'zoneadm is not there',
        'zoneadm',
        'list',
        { ok: false, reason: 'missing', output: '' },
        'zoneadm is not installed',
      ],
      [
        'the file system is not there',
        'zfs',
        'list',
        { ok: false, reason: 'failed', output: "cannot open 'rpool/berth': dataset does not exist" },
        '(zones.dataset): zfs says: cannot open',
      ],
      ['the file system is not mounted', 'zfs', 'list', { ok: true, output: 'legacy' }, 'its mountpoint is "legacy"'],
      ['its place has a blank', 'zfs', 'list', { ok: true, output: '/my zones' }, 'characters that zones cannot take'],
      ['its place is too long', 'zfs', 'list', { ok: true, output: `/${'x'.repeat(60)}` }, 'too long by'],
      [
        'the link is not there',
        'dladm',
        'show-link',
        { ok: false, reason: 'failed', output: 'dladm: invalid link name' },
        'zones.globalNic: dladm says: dladm: invalid link name',
      ],
    ] as const)('of the host when %s', async (_what, program, word, result, reason) => {
      host.before = (call) => (call.program === program && call.arguments[0] === word ? { ...result } : undefined);
      expect(await driver.fingerprint()).toMatchObject({ available: false, reason: expect.stringContaining(reason) });
      host.before = undefined;
      expect(await driver.fingerprint()).toEqual({ available: true, version: 'omnios-r151054-0000000000' });
    });
  });

  describe('leaves alone what somebody else made', () => {
    it.each(['configured', 'installed', 'running'])('a zone of the same name that is %s', async (foreignState) => {
      host.addForeignZone(zone, foreignState);
      const error = await failure(create());
      expect(error.message).toContain(`the zone ${zone} is there and was made by somebody else`);
      await driver.remove(id);
      expect(host.zone(zone)?.state).toBe(foreignState);
      expect(await host.traces(id)).toEqual([`zone ${zone}`]);
    });

    it('a volume of the same name', async () => {
      host.addForeignVolume(disk);
      expect((await failure(create())).message).toContain(`the volume ${disk} is there and was made by somebody else`);
      await driver.remove(id);
      expect(host.volumes.get(disk)?.content).toBe('theirs');
    });

    it('a volume where an image should go', async () => {
      host.addForeignVolume(imageVolume);
      expect((await failure(create())).message).toContain(imageVolume);
      expect(host.volumes.get(imageVolume)?.content).toBe('theirs');
    });
  });

  describe('a guest', () => {
    it('that powers itself off is exited, and starts no more by itself', async () => {
      await driver.close();
      await open();
      await create({ imageName: 'short-lived' });
      expect(await state('exited')).toMatchObject({ ready: true, reason: { code: 'GuestShutdown' } });
    });

    it('that ends while the agent is away is exited when it is back', async () => {
      await create();
      await ready();
      await driver.close();
      await host.kill(id);
      await open();
      expect(await state('exited')).toMatchObject({ reason: { code: 'GuestShutdown' } });
    });

    it('that the host took with it when it restarted is failed, and boots again from its disk', async () => {
      await create();
      await ready();
      await driver.close();
      host.reboot();
      await open();
      expect(await state('failed')).toMatchObject({ reason: { code: 'HostRestarted' } });
      await driver.start(id);
      await ready();
      expect(host.volumes.get(disk)?.boots).toBe(2);
    });

    it('that reboots is not taken for one that ended', async () => {
      await driver.close();
      await open({ confirmMs: 3_600_000 });
      await create();
      await ready();
      let looks = 0;
      host.after = (call) => {
        if (call.arguments[0] !== 'list' || call.program !== 'zoneadm') return undefined;
        looks++;
        return looks === 1
          ? { ok: true, output: `-:${zone}:installed:${host.mountPoint}/${zone}::bhyve:excl` }
          : undefined;
      };
      await new Promise<void>((resolve) => {
        const wait = (): void => (looks > 3 ? resolve() : void setImmediate(wait));
        wait();
      });
      expect(guest()?.state).toBe('running');
      host.after = undefined;
      await driver.stop(id, 0);
      expect(guest()?.state).toBe('stopped');
    });

    it('writes its console into the log, bounded, while its offsets stay', async () => {
      await driver.close();
      await open({ consoleBytesMax: 20_000, consoleBytesKept: 8_000 });
      await create();
      await ready();
      const total = (await driver.readLog(id, 0, 0)).size + 50_000;
      for (let i = 0; i < 50; i++) await host.say(id, `${String(i).padStart(9, '0')} ${'x'.repeat(989)}\n`);
      const size = async (): Promise<number> => (await driver.readLog(id, 0, 0)).size;
      while ((await size()) < total) await new Promise((resolve) => setImmediate(resolve));
      const start = async (): Promise<number> => (await driver.readLog(id, 0, 1)).offset;
      while ((await start()) === 0) await new Promise((resolve) => setImmediate(resolve));
      const chunk = await driver.readLog(id, 0, 100_000);
      expect(chunk.offset).toBeGreaterThanOrEqual(total - 20_000);
      expect(new TextDecoder().decode(chunk.data)).toContain('000000049 ');
      expect(await driver.readLog(id, total, 10)).toMatchObject({ offset: total, size: total });
    });

    it('finds its seed on a CD-ROM', async () => {
      await create();
      const seed = `${host.directory}/${id}/seed.iso`;
      expect(host.zone(zone)?.commands).toContain(`set special="${seed}"`);
      await driver.remove(id);
      await create({ image: { ...spec.image, nocloud: false } });
      expect(host.zone(zone)?.commands.join('\n')).not.toContain('cdrom');
    });
  });
});
