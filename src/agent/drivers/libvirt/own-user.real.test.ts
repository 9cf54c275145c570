import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HostGuard } from '../../network/host-guard.ts';
import { untilGuest } from '../conformance.ts';
import type { Driver } from '../driver.ts';
import { testSpec } from '../qemu/test-host.ts';
import { type LibvirtTestHost, makeLibvirtTestHost } from './test-host.ts';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from './test-libvirt.ts';

const never = new AbortController().signal;
const spec = testSpec();
const id = spec.instanceId;
const user = Number(spawnSync('id', ['-u', 'libvirt-qemu']).stdout.toString()) || undefined;
const reason =
  whyNoLibvirt() ?? (user === undefined ? 'there is no user libvirt-qemu, as Debian makes one' : undefined);

describe.skipIf(reason !== undefined)(`libvirt as it is installed${reason ? ` (${reason})` : ''}`, () => {
  let daemon: TestLibvirt;
  let host: LibvirtTestHost;
  let driver: Driver;
  beforeAll(async () => {
    daemon = await startLibvirt({ asInstalled: true });
  });
  afterAll(() => daemon.stop());
  beforeEach(async () => {
    host = await makeLibvirtTestHost(daemon);
    driver = host.open();
    await driver.recover();
  });
  afterEach(async () => {
    for (const each of driver.guests()) await driver.remove(each.instanceId);
    await driver.close();
    await host.dispose();
  });

  it('runs QEMU as a user of its own, who may use the guest’s files and nobody else’s', async () => {
    await driver.create(spec, never);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    const { pid } = (await host.process(id)) ?? expect.unreachable();
    expect(await readFile(`/proc/${pid}/status`, 'utf8')).toMatch(new RegExp(`^Uid:\\s+${user}\\s+${user}\\s`, 'm'));
    const [image = ''] = await readdir(host.imageDirectory);
    expect((await stat(join(host.imageDirectory, image))).uid).toBe(0);
    for (const [name, owner] of [
      ['disk.qcow2', user],
      ['seed.iso', user],
      ['console.log', 0],
      ['guest.json', 0],
    ] as const) {
      const { uid, mode } = await stat(join(host.directory, id, name));
      expect({ name, uid, others: mode & 0o077 }).toEqual({ name, uid: owner, others: 0 });
    }
    await driver.stop(id, 60_000);
    await driver.start(id);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    expect(new TextDecoder().decode((await driver.readLog(id, 0, 10_000)).data)).toMatch(/boot 0[^]*boot 1/); // it wrote to its disk
    await driver.remove(id);
    expect(await host.traces(id)).toEqual([]);
  });

  it('gives a guest’s QEMU its program, and a way to its runner', async () => {
    const runDisk = (await host.makeRunDisk?.()) ?? expect.unreachable();
    await driver.create({ ...spec, imageName: 'answering', runDisk }, never);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    const { uid, mode } = await stat(join(host.directory, id, 'run.img'));
    expect({ uid, others: mode & 0o077 }).toEqual({ uid: user, others: 0 });
    const port = (await driver.access?.openRunner?.(id)) ?? expect.unreachable();
    const answer = once(port, 'data');
    port.write('x');
    expect(String((await answer)[0])).toBe('x');
  });

  it('gives a guest’s QEMU its volumes for as long as it has them, cold and hot, and takes them back', async () => {
    const [one, two] = [`vol_${'1'.repeat(26)}`, `vol_${'2'.repeat(26)}`];
    const [cold, hot] = [await host.guestVolumes.make(one), await host.guestVolumes.make(two)];
    const owners = () =>
      Promise.all(
        [cold, hot].map(async ({ path }) => {
          const { uid, mode } = await stat(path);
          return { uid, others: mode & 0o077 };
        }),
      );
    await driver.create({ ...spec, volumes: [cold] }, never);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    await driver.volumes?.set(id, [cold, hot], never);
    expect(await owners()).toEqual([cold, hot].map(() => ({ uid: user, others: 0 })));
    await driver.volumes?.grow(id, two, 4 * 1024 * 1024);
    await driver.volumes?.snapshot(id, two, 'make', 'a');
    expect(await host.guestVolumes.look(two)).toEqual({ sizeBytes: 4 * 1024 * 1024, snapshots: ['a'] });
    await driver.stop(id, 0);
    expect(await owners()).toEqual([cold, hot].map(() => ({ uid: 0, others: 0 })));
    await driver.start(id);
    expect(await host.guestVolumes.openBy(id)).toEqual([one, two]);
  });

  it('keeps its user from link-local addresses before a guest on the network "user" starts', async () => {
    await driver.close();
    const closedTo: (readonly number[])[] = [];
    const networkGuard: HostGuard = {
      async close(users = []) {
        closedTo.push(users);
        expect(await host.runningCopies(id)).toBe(0);
      },
      open: async () => {},
      adopt: async () => false,
      fault: async () => undefined,
      leave: async () => {},
      stop() {},
    };
    driver = host.open({ networkGuard });
    await driver.recover();
    await driver.create(spec, never);
    expect(closedTo).toEqual([[user]]);
  });

  it('keeps a console’s offsets true beyond what its log daemon would cut by itself', async () => {
    await driver.create(spec, never);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    await driver.stop(id, 60_000);
    const { size } = await driver.readLog(id, 0, 0);
    const moreBytes = 2.25 * 1024 * 1024; // the log daemon's own limit is 2 MiB
    await appendFile(join(host.directory, id, 'console.log'), new Uint8Array(moreBytes));
    await driver.start(id);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    const chunk = await driver.readLog(id, size + moreBytes, 1000);
    expect(new TextDecoder().decode(chunk.data)).toMatch(/^boot 1/);
  });
});
