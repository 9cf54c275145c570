import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findImageReferences } from './image-references.ts';
import { qcow2File } from './test-qcow2.ts';

let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-guests-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const guest = async (name: string, record?: string): Promise<string> => {
  const directory = join(root, name);
  await mkdir(directory);
  if (record !== undefined) await writeFile(join(directory, 'guest.json'), record);
  return directory;
};

it('finds what guests lie upon in the headers of their disks, as QEMU writes them', async () => {
  const image = join(root, 'image.qcow2');
  await writeFile(image, qcow2File());
  for (const [name, backing] of [
    ['absolute', image],
    ['relative', '../image.qcow2'],
  ] as const) {
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', backing, 'disk.qcow2'], {
      cwd: await guest(name),
    });
  }
  const found = await findImageReferences([root]);
  expect(found).toEqual({
    complete: true,
    references: [
      { guest: 'absolute', paths: [image] },
      { guest: 'relative', paths: [image] },
    ],
  });
});

it('finds it in the record before there is a disk, and takes a record that cannot be read for none', async () => {
  await guest('preparing', '{"imageDigest":"sha256:aa"}');
  await guest('damaged', '{"imageDigest":');
  const { references } = { references: [], ...(await findImageReferences([root, join(root, 'nowhere')])) };
  expect(references).toEqual([
    { guest: 'damaged', paths: [] },
    { guest: 'preparing', paths: [], digest: 'sha256:aa' },
  ]);
});

it.each([
  ['json:{"file":{"filename":"/a"}}', 'no path'],
  ['nbd://127.0.0.1/a', 'no path'],
])('says that it cannot tell when a disk names %s', async (backing, reason) => {
  const disk = qcow2File({ backingFileOffset: 512n, backingFileSize: backing.length });
  disk.write(backing, 512);
  await writeFile(join(await guest('odd'), 'disk.qcow2'), disk);
  expect(await findImageReferences([root])).toEqual({ complete: false, reason: expect.stringContaining(reason) });
});
