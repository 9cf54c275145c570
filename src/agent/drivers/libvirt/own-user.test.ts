import { spawnSync } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
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
    driver = host.open({ consoleBytesMax: 2.25 * 1024 * 1024, consoleBytesKept: 64 * 1024 });
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
    const seed = await stat(join(host.directory, id, 'seed.iso'));
    expect({ uid: seed.uid, others: seed.mode & 0o077 }).toEqual({ uid: user, others: 0 });
    const record = await stat(join(host.directory, id, 'guest.json'));
    expect({ uid: record.uid, others: record.mode & 0o077 }).toEqual({ uid: 0, others: 0 });
    await driver.stop(id, 60_000);
    await driver.start(id);
    await untilGuest(driver, id, (seen) => seen?.ready === true);
    expect(new TextDecoder().decode((await driver.readLog(id, 0, 10_000)).data)).toMatch(/boot 0[^]*boot 1/); // it wrote to its disk
    await driver.remove(id);
    expect(await host.traces(id)).toEqual([]);
  });

  it('keeps a console’s offsets true beyond what its log daemon would cut by itself', async () => {
    await driver.create({ ...spec, imageName: 'chatterbox' }, never);
    let first = await driver.readLog(id, 0, 100);
    while (first.offset === 0) {
      await new Promise((resolve) => setImmediate(resolve));
      first = await driver.readLog(id, 0, 100);
    }
    await driver.stop(id, 0);
    const lineBytes = 'chatter '.length * 15 + 1;
    const { offset } = await driver.readLog(id, 0, 100);
    expect(offset).toBeGreaterThan(2 * 1024 * 1024);
    const chunk = await driver.readLog(id, Math.ceil(offset / lineBytes) * lineBytes, lineBytes);
    expect(new TextDecoder().decode(chunk.data)).toBe(`${'chatter '.repeat(15)}\n`);
  });
});
