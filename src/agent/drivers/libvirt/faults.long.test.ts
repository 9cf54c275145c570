import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { seededPrng } from '../../../base/prng.ts';
import { silentLogger } from '../../../base/log.ts';
import { system, systemClock } from '../../../base/system.ts';
import { untilGuest } from '../conformance.ts';
import type { Driver, Guest } from '../driver.ts';
import { isAlive } from '../../host/processes.ts';
import { connectQmp } from '../qemu/qmp.ts';
import { testSpec } from '../qemu/test-host.ts';
import { sharedFaults } from '../guest-life/test-faults.ts';
import { guestUuid } from '../guest-life/guest-files.ts';
import { readGuestRecord } from '../guest-life/guest-record.ts';
import type { Machine } from '../guest-life/hypervisor.ts';
import { createConnection } from './connection.ts';
import { domainName } from './domain/domain-xml.ts';
import { createLibvirtHypervisor } from './hypervisor.ts';
import { libvirtAddress } from './wire/libvirt-uri.ts';
import { type LibvirtTestHost, makeLibvirtTestHost } from './test-host.ts';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from './test-libvirt.ts';

const never = new AbortController().signal;
const spec = testSpec();
const id = spec.instanceId;
const reason = whyNoLibvirt();
const ready = (seen?: Guest): boolean => seen?.ready === true;
const failed = (seen?: Guest): boolean => seen?.state === 'failed';

describe.skipIf(reason !== undefined)(`the libvirt driver, when things go wrong${reason ? ` (${reason})` : ''}`, () => {
  let daemon: TestLibvirt;
  let host: LibvirtTestHost;
  let driver: Driver;
  let opened: Driver[];

  beforeAll(async () => {
    daemon = await startLibvirt();
  });
  afterAll(() => daemon.stop());

  const open = async (change = {}): Promise<Driver> => {
    driver = host.open(change);
    opened.push(driver);
    await driver.recover();
    return driver;
  };
  const guest = () => driver.guests().find((each) => each.instanceId === id);
  const log = async () => new TextDecoder().decode((await driver.readLog(id, 0, 65_536)).data);
  const recordPath = () => join(host.directory, id, 'guest.json');
  const editRecord = async (change: (record: Record<string, unknown>) => void): Promise<void> => {
    const record = JSON.parse(await readFile(recordPath(), 'utf8'));
    change(record);
    await writeFile(recordPath(), JSON.stringify(record));
  };
  const domain = () => host.ask((libvirt) => libvirt.byName(domainName(id)));
  /** What the domain of somebody else looks like, as libvirt shows it. */
  const foreign = (metadata = '') => `<domain type='qemu'><name>${domainName(id)}</name>${metadata}
<memory unit='MiB'>32</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='pc'>hvm</type></os></domain>`;

  beforeEach(async () => {
    host = await makeLibvirtTestHost(daemon);
    opened = [];
    await open();
  });
  afterEach(async () => {
    for (const each of driver.guests()) await driver.remove(each.instanceId);
    for (const each of opened) await each.close();
    await host.dispose();
  });

  describe('libvirtd that is started anew', () => {
    it('leaves a suspended guest suspended, and it goes on when it is to', async () => {
      await driver.create(spec, never);
      await untilGuest(driver, id, ready);
      await driver.suspension?.suspend(id);
      await daemon.restart();
      await driver.suspension?.suspend(id); // over the new connection
      expect(guest()).toMatchObject({ state: 'suspended' });
      expect(await host.outside.standsStill(id)).toBe(true);
      const before = await host.process(id);
      await driver.close();
      await daemon.restart();
      await open();
      expect(guest()).toMatchObject({ state: 'suspended' });
      await driver.suspension?.resume(id);
      expect(guest()).toMatchObject({ state: 'running' });
      expect(await host.outside.standsStill(id)).toBe(false);
      expect(await host.process(id)).toEqual(before);
    });

    /** Over QEMU's own monitor, which is free while libvirtd is away. */
    const pressPowerButton = async (): Promise<void> => {
      const process = (await host.process(id)) ?? expect.unreachable();
      const folder = `/proc/${process.pid}/root/var/lib/libvirt/qemu`;
      const [own = ''] = (await readdir(folder)).filter((name) => name.startsWith('domain-'));
      const stopped = Promise.withResolvers<void>();
      const qmp = await connectQmp({
        path: join(folder, own, 'monitor.sock'),
        clock: systemClock,
        timeoutMs: 5000,
        onEvent: ({ name }) => name === 'SHUTDOWN' && stopped.resolve(),
      });
      await qmp.execute('system_powerdown');
      await stopped.promise;
      qmp.close();
    };

    it('leaves the guest and its ports as they are, and hears of its end afterwards', async () => {
      await driver.create({ ...spec, ports: [{ guestPort: 22, hostPort: 0, protocol: 'tcp' }] }, never);
      const before = await untilGuest(driver, id, ready);
      const process = await host.process(id);
      await daemon.restart();
      await driver.create(spec, never);
      expect(guest()).toEqual(before);
      expect(await host.process(id)).toEqual(process);
      expect(await host.portTaken(before?.ports[0]?.hostPort ?? 0)).toBe(true);
      await host.kill(id);
      expect(await untilGuest(driver, id, failed)).toMatchObject({ reason: { code: 'HypervisorExited' } });
    });

    it('carries out a stop that is asked for while it is away', async () => {
      await driver.create(spec, never);
      await untilGuest(driver, id, ready);
      let stopping: Promise<void> | undefined;
      await daemon.restart(async () => {
        stopping = driver.stop(id, 60_000);
      });
      await stopping;
      expect(guest()).toMatchObject({ state: 'stopped' });
    });

    it('tells of a guest that powered itself off meanwhile', async () => {
      await driver.create(spec, never);
      await untilGuest(driver, id, ready);
      await daemon.restart(pressPowerButton);
      expect(await untilGuest(driver, id, (seen) => seen?.state !== 'running')).toMatchObject({
        state: 'exited',
        reason: { code: 'GuestShutdown' },
      });
      expect(await host.runningCopies(id)).toBe(0);
    });

    it('tells of a QEMU that was killed meanwhile', async () => {
      await driver.create(spec, never);
      await untilGuest(driver, id, ready);
      await daemon.restart(() => host.kill(id));
      expect(await untilGuest(driver, id, (seen) => seen?.state !== 'running')).toMatchObject({
        state: 'failed',
        reason: { code: 'HypervisorExited', message: expect.stringContaining('killed, or crashed') },
      });
    });

    it.each([
      ['powered itself off', pressPowerButton, 'exited', 'GuestShutdown'],
      ['was killed', () => host.kill(id), 'failed', 'HypervisorExited'],
    ])('while no agent is there either, tells the next one that the guest %s', async (_, act, state, code) => {
      await driver.create(spec, never);
      await untilGuest(driver, id, ready);
      await driver.close();
      await daemon.restart(act);
      await open();
      expect(await untilGuest(driver, id, (seen) => seen?.state !== 'running')).toMatchObject({
        state,
        reason: { code },
      });
    });

    it('has forgotten how a guest ended; its log has not', async () => {
      await driver.create({ ...spec, imageName: 'short-lived' }, never);
      await driver.close();
      while ((await host.runningCopies(id)) > 0) await new Promise((resolve) => setImmediate(resolve));
      await daemon.restart();
      const record = await readFile(recordPath(), 'utf8');
      await open({ logDirectory: '/nonexistent' });
      expect(await untilGuest(driver, id, (seen) => seen?.state !== 'running')).toMatchObject({
        state: 'failed',
        reason: { message: expect.stringContaining('does not know why') },
      });
      await driver.close();
      await writeFile(recordPath(), record);
      await open();
      expect(await untilGuest(driver, id, (seen) => seen?.state !== 'running')).toMatchObject({
        state: 'exited',
        reason: { code: 'GuestShutdown' },
      });
    });

    it('in the middle of a start leaves one copy or none, and the next create finishes it', async () => {
      const starting = untilGuest(driver, id, (seen) => seen?.progress === 'starting');
      const creating = driver.create(spec, never).then(
        () => 'done',
        (error: unknown) => error,
      );
      await starting;
      await daemon.restart();
      const result = await creating;
      if (result !== 'done') expect(result).toMatchObject({ code: 'HypervisorFailed' });
      await driver.create(spec, never);
      expect(await untilGuest(driver, id, ready)).toMatchObject({ state: 'running' });
      expect(await host.runningCopies(id)).toBe(1);
    });

    it('in the middle of a removal does not keep it from its end', async () => {
      await driver.create(spec, never);
      const removing = driver.remove(id);
      await daemon.restart();
      await removing;
      expect(await host.traces(id)).toEqual([]);
    });

    it('is waited for by an agent that starts while it is away: nothing is concluded about any guest', async () => {
      await driver.create(spec, never);
      const process = await host.process(id);
      await driver.close();
      await daemon.restart(async () => {
        await expect(open()).rejects.toMatchObject({
          code: 'HypervisorFailed',
          message: expect.stringContaining('libvirt does not answer'),
        });
        expect(driver.guests()).toEqual([]);
        expect(await driver.fingerprint()).toMatchObject({
          available: false,
          reason: expect.stringContaining('libvirtd'),
        });
      });
      await driver.recover();
      expect(guest()?.state).toBe('running');
      expect(await host.process(id)).toEqual(process);
    });
  });

  sharedFaults('libvirt', {
    open,
    driver: () => driver,
    host: () => host,
    startAgent: () => [
      new URL('./test-agent.ts', import.meta.url),
      ...[host.directory, host.imageDirectory, id, `qemu:///system?socket=${daemon.path}`],
    ],
    untilPanicked: async () => {
      const state = () =>
        host.ask(async (libvirt) => libvirt.state((await libvirt.byName(domainName(id))) ?? expect.unreachable()));
      while ((await state()).state === 'running');
    },
  });

  describe('an agent that is killed', () => {
    /** As if it had died right after libvirt's answer. */
    const forgetStart = (): Promise<void> =>
      editRecord((record) => Object.assign(record, { state: 'preparing', created: false, launching: true }));

    it('between starting the domain and publishing its ports is followed by one that publishes them', async () => {
      await driver.create({ ...spec, ports: [{ guestPort: 22, hostPort: 0, protocol: 'tcp' }] }, never);
      const before = await host.process(id);
      const port = guest()?.ports[0]?.hostPort ?? 0;
      await driver.close();
      await host.ask(async (libvirt) => {
        const known = (await libvirt.byName(domainName(id))) ?? expect.unreachable();
        await libvirt.monitor(known, `hostfwd_remove hostnet0 tcp:127.0.0.1:${port}`);
      });
      expect(await host.portTaken(port)).toBe(false);
      await forgetStart();
      await open();
      expect(guest()?.state).toBe('running');
      expect(await host.process(id)).toEqual(before);
      expect(await host.portTaken(port)).toBe(true);
    });

    it('between defining the domain and starting it is followed by one that starts it', async () => {
      await driver.create(spec, never);
      await driver.stop(id, 0);
      await driver.close();
      const xml = await host.ask(async (libvirt) =>
        libvirt.xml((await libvirt.byName(domainName(id))) ?? expect.unreachable()),
      );
      await host.ask(async (libvirt) => {
        await libvirt.undefine((await libvirt.byName(domainName(id))) ?? expect.unreachable());
        await libvirt.define(xml);
      });
      await forgetStart();
      await open();
      expect(guest()?.state).toBe('preparing');
      await driver.create(spec, never);
      expect(guest()?.state).toBe('running');
    });

    it('does not have a guest run twice that ran to its end in between', async () => {
      await driver.create({ ...spec, imageName: 'short-lived' }, never);
      await untilGuest(driver, id, (seen) => seen?.state === 'exited');
      await driver.close();
      await forgetStart();
      await open();
      expect(await untilGuest(driver, id, (seen) => seen?.state === 'exited')).toMatchObject({
        reason: { code: 'GuestShutdown' },
      });
      await driver.create({ ...spec, imageName: 'short-lived' }, never);
      expect((await log()).match(/boot/g)).toHaveLength(1);
    });
  });

  describe('a domain that Berth did not make', () => {
    const others = `<metadata><berth:instance xmlns:berth="urn:berth:instance:1" id="${id}" incarnation="1" directory="/srv/other/${id}"/></metadata>`;

    it.each([
      ['carries no mark', foreign(), 'which Berth did not make'],
      ['carries the mark of another agent', foreign(others), 'of the Berth that keeps its guests in /srv/other'],
      [
        'carries other metadata',
        foreign(`<metadata><x:y xmlns:x="urn:x" id="${id}"><![CDATA[a]]></x:y></metadata>`),
        'which Berth did not make',
      ],
    ])('and that %s is in the way of its name, and left exactly alone', async (_, xml, words) => {
      const made = await host.ask((libvirt) => libvirt.define(xml));
      const before = await host.ask((libvirt) => libvirt.xml(made));
      try {
        await expect(driver.create(spec, never)).rejects.toMatchObject({
          code: 'HypervisorFailed',
          message: expect.stringContaining(words),
        });
        expect(guest()).toMatchObject({ state: 'failed', reason: { code: 'HypervisorFailed' } });
        await driver.remove(id);
        expect(await host.ask((libvirt) => libvirt.xml(made))).toBe(before);
      } finally {
        await host.ask((libvirt) => libvirt.undefine(made));
      }
      await driver.create(spec, never);
      expect(guest()?.state).toBe('running');
    });

    it('runs on, whatever is done to the instance of its name', async () => {
      const made = await host.ask((libvirt) => libvirt.define(foreign()));
      await host.ask((libvirt) => libvirt.start(made));
      try {
        const before = await domain();
        await expect(driver.create(spec, never)).rejects.toMatchObject({ code: 'HypervisorFailed' });
        await driver.stop(id, 0);
        await driver.remove(id);
        await driver.close();
        await open();
        expect(await domain()).toEqual(before);
        expect(await host.ask((libvirt) => libvirt.state(made))).toMatchObject({ state: 'running' });
      } finally {
        await host.ask((libvirt) => libvirt.destroy(made));
        await host.ask((libvirt) => libvirt.undefine(made));
      }
    });

    it('and that has the uuid of a guest is left alone, too', async () => {
      const uuid = guestUuid(id, 1);
      const made = await host.ask((libvirt) =>
        libvirt.define(foreign().replace(/<name>.*?<\/name>/, `<name>other</name><uuid>${uuid}</uuid>`)),
      );
      await expect(driver.create(spec, never)).rejects.toThrow(new RegExp(`a domain other \\(${uuid}\\)`));
      await driver.remove(id);
      expect(await host.ask((libvirt) => libvirt.byUuid(uuid))).toEqual(made);
      await host.ask((libvirt) => libvirt.undefine(made));
    });
  });

  it('ends a QEMU that hangs, and others do not wait for it', async () => {
    const other = testSpec({ instanceId: 'inst_00000000000000000000000002' });
    await driver.create(spec, never);
    const process = await host.process(id);
    system.signal(process?.pid ?? 0, 'SIGSTOP');
    const stopping = driver.stop(id, 1);
    await driver.create(other, never);
    await driver.stop(other.instanceId, 0);
    await stopping;
    expect(guest()?.state).toBe('stopped');
    expect(await host.process(id)).toBeNull();
  });

  it('adopts a QEMU that hangs, and ends it', async () => {
    await driver.create(spec, never);
    await driver.close();
    const process = await host.process(id);
    system.signal(process?.pid ?? 0, 'SIGSTOP');
    await open();
    expect(guest()?.state).toBe('running');
    await driver.remove(id);
    expect(await host.traces(id)).toEqual([]);
  });

  it('tells that a guest panicked, and starts it again', async () => {
    await driver.create({ ...spec, imageName: 'panicking' }, never);
    expect(await untilGuest(driver, id, failed)).toMatchObject({ reason: { code: 'GuestPanicked' } });
    expect(await host.runningCopies(id)).toBe(0);
    await driver.close();
    await open();
    await driver.start(id);
    expect(await untilGuest(driver, id, failed)).toMatchObject({ reason: { code: 'GuestPanicked' } });
    expect(await log()).toMatch(/boot 0[^]*boot 1/);
  });

  it('says that a guest is suspended that somebody suspended, and leaves it so', async () => {
    await driver.create(spec, never);
    await host.ask(async (libvirt) => libvirt.suspend((await domain()) ?? expect.unreachable()));
    await untilGuest(driver, id, (seen) => seen?.state === 'suspended');
    await driver.close();
    await open();
    expect(guest()).toMatchObject({ state: 'suspended' });
    const state = await host.ask(async (libvirt) => libvirt.state((await domain()) ?? expect.unreachable()));
    expect(state).toMatchObject({ state: 'paused' });
  });

  it('says who ended a guest that was ended past it, and what became of one that was forgotten', async () => {
    await driver.create(spec, never);
    await host.ask(async (libvirt) => libvirt.destroy((await domain()) ?? expect.unreachable()));
    expect(await untilGuest(driver, id, failed)).toMatchObject({
      reason: { code: 'HypervisorExited', message: expect.stringContaining('somebody asked it to') },
    });
    await host.ask(async (libvirt) => libvirt.undefine((await domain()) ?? expect.unreachable()));
    await driver.start(id);
    await untilGuest(driver, id, ready);
    expect(guest()).toMatchObject({ state: 'running' });
  });

  it('says that the host restarted when that is why a guest is gone', async () => {
    await driver.create(spec, never);
    await driver.close();
    await host.kill(id);
    await editRecord((record) => Object.assign(record, { hostBootId: 'an earlier one' }));
    await open();
    expect(await untilGuest(driver, id, failed)).toMatchObject({ reason: { code: 'HostRestarted' } });
  });

  it('removes a guest whose record is damaged, with its domain', async () => {
    await driver.create(spec, never);
    const process = (await host.process(id)) ?? expect.unreachable();
    await driver.close();
    await host.damage(id);
    await open();
    expect(guest()).toMatchObject({ state: 'running', reason: { code: 'RecordDamaged' } });
    await driver.remove(id);
    expect(await isAlive(process)).toBe(false);
    expect(await host.traces(id)).toEqual([]);
  });

  it('reports the port when another program took it while the guest was stopped', async () => {
    await driver.create({ ...spec, ports: [{ guestPort: 22, hostPort: 0, protocol: 'tcp' }] }, never);
    await driver.stop(id, 0);
    const { port, release } = await host.occupyPort();
    const free = guest()?.ports[0]?.hostPort ?? 0;
    await driver.close();
    await editRecord((record) => {
      Object.assign(record, { ports: [{ guestPort: 22, hostPort: port, protocol: 'tcp' }] });
    });
    await open();
    await expect(driver.start(id)).rejects.toMatchObject({
      code: 'PortInUse',
      message: expect.stringContaining(`:${port}/tcp`),
    });
    expect(await host.runningCopies(id)).toBe(0);
    expect(await host.portTaken(free)).toBe(false);
    await release();
    await driver.start(id);
    expect(await host.portTaken(port)).toBe(true);
  });

  it('publishes UDP ports as well', async () => {
    await driver.create({ ...spec, ports: [{ guestPort: 53, hostPort: 0, protocol: 'udp' }] }, never);
    const said = await host.ask(async (libvirt) =>
      libvirt.monitor((await libvirt.byName(domainName(id))) ?? expect.unreachable(), 'info usernet'),
    );
    expect(said).toMatch(
      new RegExp(`UDP\\[HOST_FORWARD\\] +\\d+ +127\\.0\\.0\\.1 +${guest()?.ports[0]?.hostPort} .* 53 `),
    );
  });

  it.each([
    ['a network that libvirt does not have', () => ({ network: 'nowhere' }), /no network "nowhere".*LIBVIRT_NETWORK/],
    [
      'a directory that is too long for sockets',
      () => ({ directory: join(host.directory, 'x'.repeat(80)) }),
      /has \d+ bytes, and a socket's may have 107; choose a shorter data directory/,
    ],
    // This libvirt has none, whatever the machine has.
    ['the accelerator, which must be KVM', () => ({ accelerator: 'kvm' }), /KVM is not usable: .*"accelerator: kvm"/],
  ])('says what is wrong with %s, before and when a guest is made', async (_, change, words) => {
    await open(change());
    expect(await driver.fingerprint()).toMatchObject({ available: false, reason: expect.stringMatching(words) });
    await expect(driver.create(spec, never)).rejects.toThrow(words);
    await driver.remove(id);
    expect(await domain()).toBeUndefined();
  });

  it('keeps disk, seed, console and record from other users, and lets libvirt pass to what it may read', async () => {
    await driver.create(spec, never);
    for (const folder of [host.directory, join(host.directory, id)])
      expect((await stat(folder)).mode & 0o777).toBe(0o711);
    for (const name of ['disk.qcow2', 'seed.iso', 'console.log', 'guest.json'])
      expect((await stat(join(host.directory, id, name))).mode & 0o077).toBe(0);
  });

  it('tells where a guest is to be reached on this host', async () => {
    await driver.create(spec, never);
    const directory = join(host.directory, id);
    const read = await readGuestRecord(directory);
    if (read.found !== 'record') return expect.unreachable();
    const machine: Machine = { record: read.record, directory, log: silentLogger };
    const clock = systemClock;
    const prng = seededPrng(1);
    const address = libvirtAddress(`qemu:///system?socket=${daemon.path}`);
    const connection = createConnection({ address, clock, prng, log: silentLogger });
    const hypervisor = createLibvirtHypervisor({
      ...{ connection, clock, prng, log: silentLogger, network: 'user', bindAddress: '127.0.0.1', qemuImg: 'qemu-img' },
      root: async () => host.directory,
    });
    const root = await daemon.rootDirectory();
    for (const socket of ['console', 'vnc', 'guestAgent'] as const) {
      const path = await hypervisor.socketOf?.(machine, socket);
      expect((await stat(join(socket === 'console' ? '/' : root, path ?? ''))).isSocket()).toBe(true);
    }
    await driver.stop(id, 0);
    for (const socket of ['vnc', 'guestAgent'] as const)
      await expect(hypervisor.socketOf?.(machine, socket)).rejects.toMatchObject({ code: 'HypervisorFailed' });
    connection.close();
  });
});

// A daemon of its own: it must see what was mounted, and mounts of later do not reach it.
const canMount = reason === undefined && system.userId() === 0;
describe.skipIf(!canMount)('a guest of libvirt’s that has no room to write', () => {
  it('is shown so, also to the next agent, and goes on once there is room', async () => {
    const small = await mkdtemp(join(tmpdir(), 'berth-full-'));
    const mount = (...words: string[]) => expect(spawnSync('mount', words).status).toBe(0);
    mount('-t', 'tmpfs', '-o', 'size=4m,mode=711', 'tmpfs', small);
    const daemon = await startLibvirt();
    const host = await makeLibvirtTestHost(daemon);
    const opened: Driver[] = [];
    const open = async (): Promise<Driver> => {
      const driver = host.open({ directory: small });
      opened.push(driver);
      await driver.recover();
      return driver;
    };
    try {
      const first = await open();
      await first.create({ ...spec, imageName: 'writer', diskGiB: 1 }, never);
      const isFull = (seen?: Guest): boolean => seen?.reason?.code === 'DiskFull' && seen.ready;
      expect(await untilGuest(first, id, isFull)).toMatchObject({ state: 'running' });
      await first.close();
      const second = await open();
      expect(await untilGuest(second, id, isFull)).toMatchObject({ state: 'running' });
      await daemon.restart();
      const console = async () => new TextDecoder().decode((await second.readLog(id, 0, 10_000)).data);
      expect(await console()).not.toContain('all written');
      mount('-o', 'remount,size=64m', small);
      expect(await untilGuest(second, id, (seen) => seen?.reason === undefined)).toMatchObject({
        state: 'running',
        ready: true,
      });
      while (!(await console()).includes('all written')) await new Promise((resolve) => setImmediate(resolve));
      await second.remove(id);
      expect(await readdir(small)).toEqual([]);
    } finally {
      for (const each of opened) await each.close();
      await daemon.stop();
      spawnSync('umount', [small]);
      await rm(small, { recursive: true });
      await host.dispose();
    }
  });
});
