import { spawnSync } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { checkImage } from '../../images/unpack/image-gate.ts';
import type { Driver, ExportedDisk } from '../driver.ts';
import { makeQemuTestHost, type QemuTestHost, testSpec } from './test-host.ts';

const never = new AbortController().signal;
const spec = testSpec();
const id = spec.instanceId;
let host: QemuTestHost;
let driver: Driver;

beforeEach(async () => {
  host = await makeQemuTestHost();
  driver = host.open();
});
afterEach(async () => {
  await driver.remove(id);
  await driver.close();
  await host.dispose();
});

const exported = (signal = never): Promise<ExportedDisk> =>
  driver.exportDisk?.(id, signal) ?? Promise.reject(new Error('it has no exportDisk'));
const files = async (): Promise<string[]> =>
  (await readdir(join(host.directory, id))).filter((name) => name.startsWith('export'));
const makeStopped = async (): Promise<void> => {
  await driver.recover();
  await driver.create(spec, never);
  await driver.stop(id, 0);
};
/** A qemu-img whose copies take for ever; resolves `begun` with the first. */
const slowCopies = async (): Promise<{ program: string; begun: () => Promise<void> }> => {
  const program = join(host.directory, '..', 'slow-qemu-img');
  await mkdir(host.directory, { recursive: true });
  const sign = join(host.directory, '..', 'begun');
  await writeFile(
    program,
    `#!/bin/sh\nif [ "$1" = convert ]; then echo > export.qcow2; echo > '${sign}'; exec sleep 600; fi\nexec qemu-img "$@"\n`,
  );
  await chmod(program, 0o755);
  return {
    program,
    async begun() {
      while (!(await readdir(join(host.directory, '..'))).includes('begun'))
        await new Promise((resolve) => setImmediate(resolve));
    },
  };
};

it('copies the disk of a stopped guest into a file that stands for itself', async () => {
  await makeStopped();
  const { file, sizeBytes } = await exported();
  expect((await file.stat()).size).toBe(sizeBytes);
  expect(await checkImage(file, 'qcow2', { virtualBytesMax: 1e12 })).toEqual({ ok: true, virtualSizeBytes: 1024 ** 2 });
  expect(await files()).toEqual([]);
  await file.close();
  await driver.start(id);
});

it('copies it for two who ask at the same time', async () => {
  await makeStopped();
  const [first, second] = await Promise.all([exported(), exported()]);
  for (const { file, sizeBytes } of [first, second]) {
    expect((await file.stat()).size).toBe(sizeBytes);
    await file.close();
  }
});

it.each([
  [
    'what it lies upon',
    (secret: string) => ['rebase', '-u', '-f', 'qcow2', '-F', 'raw', '-b', secret, 'disk.qcow2'],
    0,
  ],
  [
    'where its data is',
    (secret: string) => [
      'create',
      '-q',
      '-f',
      'qcow2',
      '-o',
      `data_file=${secret},data_file_raw=on`,
      'disk.qcow2',
      '1M',
    ],
    'says that its data is in another file',
  ],
] as const)('reads no other file of the host, whatever the disk says of %s', async (_, words, refusal) => {
  await makeStopped();
  const secret = 'secret';
  const directory = join(host.directory, id);
  await writeFile(join(directory, secret), 'the secret of this host'.padEnd(1024 ** 2, '!'));
  const before = await readFile(join(directory, secret));
  expect(spawnSync('qemu-img', words(secret), { cwd: directory }).status).toBe(0);
  await writeFile(join(directory, secret), before); // making a disk with other data empties that
  if (refusal !== 0) return expect(exported()).rejects.toThrow(refusal);
  const { file } = await exported();
  const [copy, flat] = [join(directory, 'copy.qcow2'), join(directory, 'flat')];
  await writeFile(copy, await file.readFile());
  await file.close();
  expect(spawnSync('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', copy, flat]).status).toBe(0);
  expect((await readFile(flat)).includes('the secret')).toBe(false);
});

it('does not touch one that runs, or that is not there', async () => {
  await expect(exported()).rejects.toMatchObject({ code: 'NoSuchGuest' });
  await driver.recover();
  await driver.create(spec, never);
  await expect(exported()).rejects.toMatchObject({ code: 'Aborted' });
  expect(await files()).toEqual([]);
});

it('is given up at once when the guest is removed, or nobody waits any more', async () => {
  const { program, begun } = await slowCopies();
  await driver.close();
  driver = host.open({ qemuImgProgram: program });
  await makeStopped();
  const leaving = new AbortController();
  const first = exported(leaving.signal);
  await begun();
  expect(await files()).toEqual(['export.qcow2']);
  leaving.abort();
  await expect(first).rejects.toMatchObject({ code: 'Aborted' });
  expect(await files()).toEqual([]);
  const second = expect(exported()).rejects.toMatchObject({ code: 'Aborted' });
  await driver.remove(id);
  await second;
  expect(await host.traces(id)).toEqual([]);
});

it('has a start wait until it is done, and leaves the guest startable when the agent ends', async () => {
  const { program, begun } = await slowCopies();
  await driver.close();
  driver = host.open({ qemuImgProgram: program });
  await makeStopped();
  const copy = expect(exported()).rejects.toMatchObject({ code: 'Aborted' });
  await begun();
  const start = expect(driver.start(id)).rejects.toMatchObject({ code: 'Aborted' }); // in line, as the driver closes
  await driver.close();
  await Promise.all([copy, start]);
  driver = host.open();
  await driver.recover();
  await driver.start(id);
  expect(await host.runningCopies(id)).toBe(1);
});
