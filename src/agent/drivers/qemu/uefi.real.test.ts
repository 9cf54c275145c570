import { mkdir, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { system } from '../../../base/system.ts';
import type { ImageCache } from '../../images/image-cache.ts';
import { untilGuest } from '../conformance.ts';
import type { Driver, GuestSpec } from '../driver.ts';
import { firmwareFiles } from '../guest-life/boot/firmware.ts';
import { makeQemuTestHost, type QemuTestHost, testSpec, testUsers } from './test-host.ts';
import { makeUefiDisk, uefiDiskMiB } from './test-uefi-disk.ts';

const never = new AbortController().signal;
const id = testSpec().instanceId;
let host: QemuTestHost;
let driver: Driver;
let images: ImageCache;

beforeEach(async () => {
  host = await makeQemuTestHost();
  await mkdir(host.imageDirectory, { recursive: true });
  const path = join(host.imageDirectory, 'uefi.raw');
  makeUefiDisk(path);
  images = {
    ensure: async () => ({
      path,
      format: 'raw',
      digest: `sha256:${'0'.repeat(64)}`,
      virtualSizeBytes: uefiDiskMiB * 1024 ** 2,
    }),
    list: async () => [],
  };
  await open();
});
afterEach(async () => {
  await driver.remove(id);
  await driver.close();
  await host.dispose();
});

async function open(): Promise<void> {
  driver = host.open({ images, ...testUsers });
  await driver.recover();
}
const create = (change: Partial<GuestSpec>): Promise<void> =>
  driver.create(testSpec({ memoryMiB: 128, ...change }), never);
const ready = () => untilGuest(driver, id, (each) => each?.ready === true);
const fileOf = (name: string): Promise<Buffer> => readFile(join(host.directory, id, name));

/** The programs that work in the guest's folder. */
async function programs(): Promise<string[]> {
  const found = await Promise.all(
    (await readdir('/proc')).map(async (pid) => {
      if ((await readlink(`/proc/${pid}/cwd`).catch(() => '')) !== join(host.directory, id)) return [];
      return [await readFile(`/proc/${pid}/comm`, 'utf8')];
    }),
  );
  return found
    .flat()
    .map((name) => name.trim())
    .sort();
}

it('finds what this machine has for UEFI, secure boot and a TPM', async () => {
  expect((await driver.fingerprint()).boots).toEqual(['uefi', 'uefi-secure-boot', 'tpm']);
});

it('boots by UEFI with a TPM, and keeps the variables of both over restarts of guest and agent', async () => {
  await create({ firmware: 'uefi', tpm: true });
  await ready();
  expect(await programs()).toEqual(['qemu-system-x86', 'swtpm']);
  const made = 'as new linear NVRAM store';
  expect((await fileOf('qemu.stderr')).toString()).toContain(made);
  const variables = await fileOf('uefi-vars.fd');
  expect(variables.equals(await readFile(firmwareFiles('uefi').variables))).toBe(false); // it noted what it booted
  await driver.close();
  await open(); // another agent finds both
  expect(driver.guests()).toMatchObject([{ state: 'running' }]);
  expect(await programs()).toEqual(['qemu-system-x86', 'swtpm']);
  await driver.stop(id, 0);
  await expect.poll(programs).toEqual([]);
  await driver.start(id);
  expect((await fileOf('uefi-vars.fd')).equals(variables)).toBe(true);
  expect((await fileOf('qemu.stderr')).toString()).not.toContain(made); // its keys are those of the first start
  await host.kill(id);
  await expect.poll(programs).toEqual([]);
  await driver.remove(id);
  expect(await host.traces(id)).toEqual([]);
});

it('refuses to boot what is not signed, with secure boot', async () => {
  await create({ firmware: 'uefi-secure-boot' });
  const said = async () => Buffer.from((await driver.readLog(id, 0, 65_536)).data).toString();
  await expect.poll(said).toContain('Access Denied');
  expect(await said()).not.toContain('berth: ready');
});

it.each(['uefi-vars.fd', 'tpm.state'])(
  'does not start a guest whose %s was lost, as with an empty one',
  async (name) => {
    await create({ firmware: 'uefi', tpm: true });
    await driver.stop(id, 0);
    await rm(join(host.directory, id, name));
    await expect(driver.start(id)).rejects.toThrow(/is missing; put it back, or delete the instance/);
  },
);

it.skipIf(system.userId() !== 0)('runs the TPM as the user of its guest (as root only)', async () => {
  await create({ firmware: 'uefi', tpm: true });
  const status = async (): Promise<string[]> => {
    const owners = await Promise.all(
      (await readdir('/proc')).map(async (pid) => {
        if ((await readlink(`/proc/${pid}/cwd`).catch(() => '')) !== join(host.directory, id)) return [];
        return [/^Uid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? ''];
      }),
    );
    return owners.flat();
  };
  const [first = '', second = ''] = await status();
  expect(Number(first)).toBeGreaterThanOrEqual(testUsers.users?.first ?? Number.POSITIVE_INFINITY);
  expect(second).toBe(first);
});
