import { execFileSync } from 'node:child_process';
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { diskInTar } from './disk-in-tar.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'berth-tar-'));
  mkdirSync(join(directory, 'root', 'disk'), { recursive: true });
});
afterEach(() => rmSync(directory, { recursive: true }));

const disk = Buffer.from('a disk'.repeat(1000));
const root = (...path: string[]): string => join(directory, 'root', ...path);
/** With GNU tar. */
const tarOf = (...options: string[]): Buffer => {
  execFileSync('tar', ['-C', root(), '-cf', join(directory, 'a.tar'), ...options, '.']);
  return readFileSync(join(directory, 'a.tar'));
};
/** The archive comes in pieces of this many bytes. */
async function read(archive: Buffer, pieceBytes = 1000): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  async function* source(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < archive.length; at += pieceBytes) yield archive.subarray(at, at + pieceBytes);
  }
  for await (const piece of diskInTar(source())) pieces.push(piece);
  return Buffer.concat(pieces);
}
/** One entry by hand: what no tar program writes. */
function entry(name: string, content: Buffer, type = '0', sizeText?: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write('0000644\0', 100);
  header.write(sizeText ?? `${content.length.toString(8).padStart(11, '0')}\0`, 124);
  header.write(type, 156);
  header.write('ustar\x0000', 257, 'latin1');
  header.fill(0x20, 148, 156);
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}
const end = Buffer.alloc(1024);

it.each([1, 100, 512, 1000, 1_000_000])('finds the disk in what comes in pieces of %i bytes', async (pieceBytes) => {
  writeFileSync(root('disk', 'disk.img'), disk);
  writeFileSync(root('other'), 'x'.repeat(2000));
  expect(await read(tarOf(), pieceBytes)).toEqual(disk);
});

it('finds it under a name that is longer than a header has room for', async () => {
  writeFileSync(root('disk', `${'long'.repeat(50)}.img`), disk);
  for (const format of ['gnu', 'pax']) expect(await read(tarOf(`--format=${format}`)), format).toEqual(disk);
});

it.each([
  ['is a link to elsewhere', () => symlinkSync('/etc/shadow', root('disk', 'disk.img')), 'no plain file'],
  [
    'is a second name of another file',
    () => {
      writeFileSync(root('a'), disk);
      linkSync(root('a'), root('disk', 'disk.img'));
    },
    'in disk/',
  ],
  ['is a device', () => execFileSync('mknod', [root('disk', 'disk.img'), 'c', '1', '3']), 'no plain file'],
  ['is missing', () => writeFileSync(root('disk.img'), disk), 'no file in disk/'],
  [
    'is there twice',
    () => {
      writeFileSync(root('disk', 'a'), disk);
      writeFileSync(root('disk', 'b'), disk);
    },
    'more than one',
  ],
] as const)('refuses an archive whose disk %s', async (_, make, message) => {
  make();
  await expect(read(tarOf('--sort=name'))).rejects.toMatchObject({
    code: 'ImageInvalid',
    message: expect.stringContaining(message),
  });
});

it('refuses one that is sparse: its content would not be what stands there', async () => {
  writeFileSync(root('disk', 'disk.img'), 'x');
  truncateSync(root('disk', 'disk.img'), 10_000_000);
  for (const format of ['gnu', 'pax'])
    await expect(read(tarOf('--sparse', `--format=${format}`)), format).rejects.toMatchObject({ code: 'ImageInvalid' });
});

it.each([
  ['a header that is none', Buffer.alloc(2048, 0x41), 'checksum of a header'],
  ['an end in the middle', Buffer.concat([entry('disk/a', disk)]).subarray(0, 2000), 'cut off'],
  ['a negative size', entry('disk/a', disk, '0', '-0000000010\0'), 'no possible size'],
  ['a size that is no number', entry('disk/a', disk, '0', 'zzzzzzzzzzz\0'), 'no possible size'],
  ['a path said again in an extension', Buffer.concat([entry('x', Buffer.from('24 size=1\n'), 'x'), end]), 'twice'],
  ['an endless extension', entry('x', Buffer.alloc(2_000_000), 'x'), 'a mebibyte'],
  ['climbing out and in again', Buffer.concat([entry('../disk/a', disk), end]), 'no file in disk/'],
])('refuses %s', async (_, archive, message) => {
  await expect(read(archive)).rejects.toMatchObject({
    code: 'ImageInvalid',
    message: expect.stringContaining(message),
  });
});

it('ends with an archive of a million entries', async () => {
  const one = entry('a', Buffer.alloc(0));
  await expect(read(Buffer.concat(Array.from({ length: 100_002 }, () => one)), 1_000_000)).rejects.toMatchObject({
    message: expect.stringContaining('more than 100000 entries'),
  });
});
