import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { system } from '../../../base/system.ts';
import { untilGuest } from '../conformance.ts';
import type { Driver, Guest } from '../driver.ts';
import { sharedFaults } from '../guest-life/test-faults.ts';
import { isAlive } from '../../host/processes.ts';
import { makeQemuTestHost, type QemuTestHost, testSpec, testUsers } from './test-host.ts';

const never = new AbortController().signal;
const spec = testSpec();
const id = spec.instanceId;

describe('the QEMU driver, when things go wrong', () => {
  let host: QemuTestHost;
  let driver: Driver;
  let opened: Driver[];

  const open = async (change = {}): Promise<Driver> => {
    driver = host.open({ ...testUsers, ...change });
    opened.push(driver);
    await driver.recover();
    return driver;
  };
  const guest = () => driver.guests().find((each) => each.instanceId === id);
  const recordPath = () => join(host.directory, id, 'guest.json');
  const editRecord = async (change: (record: Record<string, unknown>) => void): Promise<void> => {
    const record = JSON.parse(await readFile(recordPath(), 'utf8'));
    change(record);
    await writeFile(recordPath(), JSON.stringify(record));
  };

  beforeEach(async () => {
    host = await makeQemuTestHost();
    opened = [];
    await open();
  });
  afterEach(async () => {
    for (const each of driver.guests()) await driver.remove(each.instanceId);
    for (const each of opened) await each.close();
    await host.dispose();
  });

  sharedFaults('QEMU', {
    open,
    driver: () => driver,
    host: () => host,
    startAgent: () => [new URL('./test-agent.ts', import.meta.url), host.directory, host.imageDirectory, id],
    untilPanicked: () => host.untilStatus(id, 'guest-panicked'),
  });

  describe('an agent that is killed', () => {
    it('between starting QEMU and writing its pid is followed by one that finds the process', async () => {
      await driver.create(spec, never);
      const before = await host.process(id);
      await driver.close();
      await editRecord((record) => {
        Object.assign(record, { state: 'preparing', created: false, launching: true });
        delete record['process'];
      });
      await open();
      expect(guest()?.state).toBe('running');
      await driver.create(spec, never);
      expect(await host.process(id)).toEqual(before);
    });
  });

  it('finds a guest whose pid belongs to a stranger now dead, and leaves the stranger alone', async () => {
    await driver.create(spec, never);
    await driver.close();
    await host.kill(id);
    const stranger = spawn('sleep', ['600'], { cwd: join(host.directory, id) });
    await once(stranger, 'spawn');
    await editRecord((record) => Object.assign(record, { process: { pid: stranger.pid, startTicks: 1 } }));
    await open();
    expect(guest()).toMatchObject({ state: 'failed', reason: { code: 'HypervisorExited' } });
    await driver.remove(id);
    expect(stranger.exitCode).toBeNull();
    stranger.kill('SIGKILL');
  });

  it('says that the host restarted when that is why a guest is gone', async () => {
    await driver.create(spec, never);
    await driver.close();
    await host.kill(id);
    await editRecord((record) => Object.assign(record, { hostBootId: 'an earlier one' }));
    await open();
    expect(guest()).toMatchObject({ state: 'failed', reason: { code: 'HostRestarted' } });
  });

  it('shows a guest whose record is damaged as running while it runs, and removes it with its process', async () => {
    await driver.create(spec, never);
    const process = await host.process(id);
    await driver.close();
    await host.damage(id);
    await open();
    expect(guest()).toMatchObject({
      state: 'running',
      reason: { code: 'RecordDamaged', message: expect.stringContaining(`QEMU (pid ${process?.pid}) runs it`) },
    });
    await driver.remove(id);
    expect(process !== null && (await isAlive(process))).toBe(false);
    expect(await host.traces(id)).toEqual([]);
  });

  it('shows a guest whose record is damaged as failed once it has ended', async () => {
    await driver.create(spec, never);
    await driver.close();
    await host.damage(id);
    await open();
    await host.kill(id);
    expect(await untilGuest(driver, id, (seen) => seen?.state === 'failed')).toMatchObject({
      damaged: true,
      reason: { code: 'RecordDamaged' },
    });
  });

  it('adopts a guest by the record before the last change where the current one is damaged', async () => {
    await driver.create(spec, never);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    const process = await host.process(id);
    await driver.close();
    await writeFile(recordPath(), '{"version": 1, "instan');
    await open();
    expect(await untilGuest(driver, id, (seen) => seen?.ready === true)).toMatchObject({
      state: 'running',
      incarnation: spec.incarnation,
    });
    expect(guest()).not.toHaveProperty('damaged');
    expect(await host.process(id)).toEqual(process);
    await driver.stop(id, 60_000);
    await driver.start(id);
    await driver.close();
    await open();
    expect(guest()?.state).toBe('running');
  });

  it('keeps the disk of a guest that runs when its record is gone', async () => {
    await driver.create(spec, never);
    await driver.close();
    for (const name of ['guest.json', 'guest.json.old']) await rm(join(host.directory, id, name));
    await open();
    expect(guest()).toMatchObject({ state: 'running', damaged: true });
    expect(await readdir(join(host.directory, id))).toContain('disk.qcow2');
  });

  it.each([
    ['nothing', ''],
    ['JSON of another form', '{"version": 1, "instanceId": 7}'],
    ['an impossible version', '{"version": "new"}'],
  ])('leaves the disk of a guest alone whose record holds %s', async (_what, text) => {
    await driver.create(spec, never);
    await driver.close();
    for (const path of [recordPath(), `${recordPath()}.old`]) await writeFile(path, text);
    await open();
    await expect(driver.create({ ...spec, incarnation: 2 }, never)).rejects.toMatchObject({ code: 'Internal' });
    expect(await readFile(recordPath(), 'utf8')).toBe(text);
    expect(await readdir(join(host.directory, id))).toContain('disk.qcow2');
    expect(guest()?.reason?.message).toContain(join(host.directory, id));
  });

  it('does not judge what a newer Berth wrote: it refuses to recover, and the guests run on', async () => {
    await driver.create(spec, never);
    const process = await host.process(id);
    await driver.close();
    await editRecord((record) => Object.assign(record, { version: 2, state: 'something new' }));
    const before = await readFile(recordPath(), 'utf8');
    await expect(open()).rejects.toThrow(/version 2, of a newer Berth; start that version again/);
    expect(driver.guests()).toEqual([]);
    expect(await readFile(recordPath(), 'utf8')).toBe(before);
    await editRecord((record) => Object.assign(record, { version: 1, state: 'running' }));
    await driver.recover();
    expect(guest()?.state).toBe('running');
    expect(await host.process(id)).toEqual(process);
  });

  it('ends a QEMU that hangs', async () => {
    await driver.create(spec, never);
    const process = await host.process(id);
    system.signal(process?.pid ?? 0, 'SIGSTOP');
    await driver.stop(id, 0);
    expect(guest()?.state).toBe('stopped');
    expect(await host.process(id)).toBeNull();
  });

  it('reports the port when another program took it while the guest was stopped', async () => {
    await driver.create({ ...spec, ports: [{ guestPort: 22, hostPort: 0, protocol: 'tcp' }] }, never);
    await driver.stop(id, 0);
    const port = guest()?.ports[0]?.hostPort ?? 0;
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    await expect(driver.start(id)).rejects.toMatchObject({
      code: 'PortInUse',
      message: expect.stringContaining(`:${port}/tcp`),
    });
    await new Promise((resolve) => server.close(resolve));
    await driver.start(id);
    expect(guest()).toMatchObject({ state: 'running', ports: [{ hostPort: port, hostAddress: '127.0.0.1' }] });
  });

  it('says what to install when there is no QEMU', async () => {
    await open({ qemuProgram: '/nonexistent/qemu' });
    expect(await driver.fingerprint()).toMatchObject({
      available: false,
      reason: expect.stringContaining('qemu-system-x86'),
    });
    await expect(driver.create(spec, never)).rejects.toMatchObject({ code: 'HypervisorFailed' });
    expect(guest()).toMatchObject({ state: 'failed', reason: { code: 'HypervisorFailed' } });
  });

  it('takes nothing but instance ids as names of folders', async () => {
    for (const instanceId of ['../inst_00000000000000000000000001', 'inst_1', '']) {
      await expect(driver.remove(instanceId)).rejects.toMatchObject({ code: 'NoSuchGuest' });
      expect(() => driver.create({ ...spec, instanceId }, never)).toThrow(/not an instance id/);
    }
  });

  it('tells that a guest panicked, and starts it again', async () => {
    await driver.create({ ...spec, imageName: 'panicking' }, never);
    const failed = (seen?: Guest): boolean => seen?.state === 'failed';
    const panicked = { reason: { code: 'GuestPanicked', message: expect.stringContaining('console') } };
    expect(await untilGuest(driver, id, failed)).toMatchObject(panicked);
    expect(await host.runningCopies(id)).toBe(0);
    await driver.start(id);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    expect(await untilGuest(driver, id, failed)).toMatchObject(panicked);
  });

  it('gives the guest the disk it asked for, and never less than the image', async () => {
    const sizeOf = () => {
      const info = spawnSync('qemu-img', [
        'info',
        '--output=json',
        '-f',
        'qcow2',
        join(host.directory, id, 'disk.qcow2'),
      ]);
      return JSON.parse(info.stdout.toString())['virtual-size'];
    };
    await driver.create({ ...spec, diskGiB: 3 }, never);
    await driver.stop(id, 0);
    expect(sizeOf()).toBe(3 * 1024 ** 3);
    await driver.create({ ...spec, incarnation: 2 }, never);
    await driver.stop(id, 0);
    expect(sizeOf()).toBe(1024 ** 2);
  });

  it('keeps disk, seed and record from other users', async () => {
    await driver.create(spec, never);
    expect((await stat(join(host.directory, id))).mode & 0o066).toBe(0); // at most they pass through
    for (const name of ['disk.qcow2', 'seed.iso', 'guest.json'])
      expect((await stat(join(host.directory, id, name))).mode & 0o077).toBe(0);
  });

  // Needs the right to mount.
  const canMount = system.userId() === 0;
  it.skipIf(!canMount)('says that the disk is full, leaves nothing, and works again once there is room', async () => {
    const small = await mkdtemp(join(tmpdir(), 'berth-full-'));
    const mount = (...words: string[]) => expect(spawnSync('mount', words).status).toBe(0);
    mount('-t', 'tmpfs', '-o', 'size=100k', 'tmpfs', small);
    try {
      await open({ directory: small });
      await expect(driver.create(spec, never)).rejects.toMatchObject({
        code: 'DiskFull',
        message: expect.stringContaining(small),
      });
      expect(guest()).toMatchObject({ state: 'failed', reason: { code: 'DiskFull' } });
      mount('-o', 'remount,size=10m', small);
      await driver.create(spec, never);
      expect(guest()?.state).toBe('running');
      await driver.remove(id);
      expect(await readdir(small)).toEqual([]);
    } finally {
      spawnSync('umount', [small]);
      await rm(small, { recursive: true });
    }
  });

  it.skipIf(!canMount)(
    'shows that a guest that runs has no room to write, also to the next agent, and lets it go on once there is room',
    async () => {
      const small = await mkdtemp(join(tmpdir(), 'berth-full-'));
      const mount = (...words: string[]) => expect(spawnSync('mount', words).status).toBe(0);
      const console = async () => new TextDecoder().decode((await driver.readLog(id, 0, 10_000)).data);
      mount('-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', small);
      try {
        await open({ directory: small });
        await driver.create({ ...spec, imageName: 'writer', diskGiB: 1 }, never);
        const isFull = (seen?: Guest): boolean => seen?.reason?.code === 'DiskFull' && seen.ready;
        expect(await untilGuest(driver, id, isFull)).toMatchObject({ state: 'running' });
        await driver.close();
        await open({ directory: small });
        expect(await untilGuest(driver, id, isFull)).toMatchObject({ state: 'running' });
        expect(await console()).not.toContain('all written');
        mount('-o', 'remount,size=64m', small);
        const relieved = await untilGuest(driver, id, (seen) => seen?.reason === undefined);
        expect(relieved).toMatchObject({ state: 'running', ready: true });
        while (!(await console()).includes('all written')) await new Promise((resolve) => setImmediate(resolve));
        await driver.stop(id, 0);
        expect(guest()).toMatchObject({ state: 'stopped' });
      } finally {
        await driver.remove(id);
        for (const each of opened) await each.close();
        spawnSync('umount', [small]);
        await rm(small, { recursive: true });
      }
    },
  );

  it.skipIf(!canMount)(
    'says that the disk is full when not even the first byte fits, and removes all the same',
    async () => {
      const small = await mkdtemp(join(tmpdir(), 'berth-full-'));
      expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', small]).status).toBe(0);
      try {
        await mkdir(join(small, 'guests'));
        await writeFile(join(small, 'filler'), new Uint8Array(100_000)).catch(() => {}); // all there is
        await open({ directory: join(small, 'guests') });
        await expect(driver.create(spec, never)).rejects.toMatchObject({ code: 'DiskFull' });
        await driver.remove(id);
        expect(driver.guests()).toEqual([]);
        expect(await readdir(join(small, 'guests'))).toEqual([]);
      } finally {
        spawnSync('umount', [small]);
        await rm(small, { recursive: true });
      }
    },
  );
});
