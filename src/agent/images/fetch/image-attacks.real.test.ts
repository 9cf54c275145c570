// Attacks on a host that takes disk images from strangers, each by a file that does it, through the whole way from server to cache.
// Elsewhere: URLs and redirects (http-get.test.ts), lengths, drips and changes under way (image-faults.test.ts), archives (disk-in-tar.test.ts),
// registries (oci-source.test.ts), what a guest writes into its own disk and what burns qemu-img (qemu-img.test.ts), seeds (vm/iso9660.test.ts),
// and how container engines unpack layers, which no code here does.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { matches } from '../../../api/parse.ts';
import { ImageSpec } from '../../../api/resources/image.ts';
import { DottedName } from '../../../api/resources/metadata.ts';
import { ensure, type ImageTrial, sha256, startImageTrial, testImage, testImageSpec } from '../test-images.ts';
import { type Qcow2Fields, qcow2File } from '../test-qcow2.ts';

let trial: ImageTrial;
beforeEach(async () => {
  trial = await startImageTrial();
});
afterEach(() => trial.end());

const xz = (bytes: Buffer): Buffer => execFileSync('xz', ['-c', '-0'], { input: bytes, maxBuffer: 1 << 28 });
const withBacking = (name: string): Buffer => {
  const file = qcow2File({ backingFileOffset: 512n, backingFileSize: name.length });
  file.write(name, 512);
  return file;
};
const text = (words: string): Buffer => Buffer.from(words.padEnd(4096, '\n'));
const iso = (): Buffer => {
  const file = Buffer.alloc(0x9000);
  file.write('CD001', 0x8001);
  return file;
};
const raw: Partial<ImageSpec> = { format: 'raw' };
const header = (fields: Qcow2Fields) => (): Buffer => qcow2File(fields);

type Row = readonly [name: string, make: () => Buffer, more: Partial<ImageSpec>, reason: string];

const rows: readonly Row[] = [
  // A file of the host behind the image (CVE-2024-32498, CVE-2022-47951, CVE-2024-40767).
  ['a backing file', () => withBacking('/etc/shadow'), {}, 'backing file'],
  ['a backing file beside it', () => withBacking('../other.img'), {}, 'backing file'],
  ['a backing file by JSON', () => withBacking('json:{"driver":"file","filename":"/etc/shadow"}'), {}, 'backing file'],
  ['a backing file on the network', () => withBacking('nbd://10.0.0.1/x'), {}, 'backing file'],
  ['an external data file', header({ incompatible: 4n }), {}, 'external data file'],
  [
    'a VMDK descriptor that names a file',
    () => text('# Disk DescriptorFile\nversion=1\nRW 1 FLAT "/etc/shadow" 0'),
    raw,
    'vmdk',
  ],
  ['a sparse VMDK', () => text('KDMV'), raw, 'vmdk'],
  ['a qcow2 that says it is raw', testImage, raw, 'qcow2'],
  ['a VHD that says it is raw', () => text('conectix'), raw, 'vpc'],
  ['a VHDX that says it is raw', () => text('vhdxfile'), raw, 'vhdx'],
  ['a CD that says it is raw', iso, raw, 'ISO 9660'],
  ['a VMDK that says it is qcow2', () => text('# Disk DescriptorFile'), {}, 'vmdk'],
  // Numbers that a reader multiplies, shifts or allocates by (CVE-2014-0144 and those around it).
  ['features nobody knows', header({ incompatible: 1n << 63n }), {}, 'features not known'],
  ['a dirty bit', header({ incompatible: 1n }), {}, 'not closed cleanly'],
  ['a corrupt bit', header({ incompatible: 2n }), {}, 'corrupt'],
  ['encryption', header({ encryption: 1 }), {}, 'encrypted'],
  ['a huge table of snapshots', header({ snapshots: 0xffffffff }), {}, 'snapshots'],
  ['a first table of 2^31 entries', header({ l1Entries: 2 ** 31 }), {}, 'L1 table'],
  ['clusters of a byte', header({ clusterBits: 0 }), {}, 'cluster_bits'],
  ['clusters of 2^63 bytes', header({ clusterBits: 63 }), {}, 'cluster_bits'],
  ['reference counts of 2^63 bits', header({ refcountOrder: 63 }), {}, 'refcount_order'],
  ['a disk of 2^63 - 1 bytes', header({ virtualSize: 2n ** 63n - 1n }), {}, 'larger than'],
  ['a disk of 8 PiB', header({ virtualSize: 8n * 1024n ** 5n }), {}, 'larger than'],
  // Sizes.
  ['nothing', () => Buffer.alloc(0), {}, 'empty'],
  ['nothing, raw', () => Buffer.alloc(0), raw, 'empty'],
  ['half a sector', () => Buffer.alloc(1000, 1), raw, '512-byte sectors'],
  // Packings (a window of 2^31 bytes would be that much memory, chosen by a stranger).
  ['zstd with a window of 2 GiB', () => Buffer.from('28b52ffd00a8110000aabb', 'hex'), { decompress: 'zstd' }, 'zstd'],
  ['zstd in zstd', () => zstdCompressSync(zstdCompressSync(testImage())), { decompress: 'zstd' }, 'packed with zstd'],
  ['gzip in zstd', () => zstdCompressSync(gzipSync(testImage())), { decompress: 'zstd' }, 'packed with gzip'],
  ['gzip that is not told', () => gzipSync(testImage()), {}, 'packed with gzip'],
  [
    'something after gzip',
    () => Buffer.concat([gzipSync(testImage()), Buffer.from('more than this')]),
    { decompress: 'gzip' },
    'gzip',
  ],
  [
    'something after zstd',
    () => Buffer.concat([zstdCompressSync(testImage()), Buffer.from('more')]),
    { decompress: 'zstd' },
    'zstd',
  ],
  [
    'something after xz',
    () => Buffer.concat([xz(testImage()), Buffer.from('more than this')]),
    { decompress: 'xz' },
    'xz',
  ],
];

describe('an image with', () => {
  it.each(rows)('%s is refused, and nothing of it stays', async (_, make, more, reason) => {
    trial.server.files.set('/a', { bytes: make(), etag: '"1"' });
    await expect(ensure(trial.cache(), trial.spec('/a', more))).rejects.toMatchObject({
      code: 'ImageInvalid',
      message: expect.stringContaining(reason),
    });
    expect(await trial.left()).toEqual([]);
  });
});

describe('a small file that becomes a large one', () => {
  it.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
    ['xz', xz],
  ] as const)('by %s is stopped on the way', async (decompress, pack) => {
    const bytes = pack(Buffer.alloc(64 * 1024 * 1024));
    expect(bytes.length).toBeLessThan(100_000);
    trial.server.files.set('/a', { bytes });
    const cache = trial.cache({ maxBytes: 8 * 1024 * 1024 });
    await expect(ensure(cache, trial.spec('/a', { decompress, format: 'raw' }))).rejects.toMatchObject({
      code: 'ImageTooLarge',
    });
    expect(await trial.left()).toEqual([]);
  });

  it('by a hole of a tebibyte is refused before it is read', async () => {
    const path = join(trial.directory, 'sparse.raw');
    await writeFile(path, '');
    await truncate(path, 1024 ** 4);
    await expect(ensure(trial.cache(), trial.spec(pathToFileURL(path).href, raw))).rejects.toMatchObject({
      code: 'ImageTooLarge',
    });
  });

  it('is taken up to the very limit, and no byte further', async () => {
    const bytes = randomBytes(1024 * 1024);
    trial.server.files.set('/a', { bytes });
    expect((await ensure(trial.cache({ maxBytes: bytes.length }), trial.spec('/a', raw))).digest).toBe(sha256(bytes));
    const less = trial.cache({ maxBytes: bytes.length - 1, directory: join(trial.directory, 'other') });
    await expect(ensure(less, trial.spec('/a', raw))).rejects.toMatchObject({ code: 'ImageTooLarge' });
  });
});

describe('a name', () => {
  it.each([
    '../../etc/x',
    '-snapshot',
    'json:{}',
    'fat:rw:/',
    'file:/dev/sda',
    'nbd:x',
    'a b',
    'A',
    '',
    'a'.repeat(4096),
    'a/b',
    'ⓐ',
  ])('%s is none of an image', (name) => {
    expect(matches(DottedName, name)).toBe(false);
  });

  it('is never one on disk: there stand digests', async () => {
    trial.server.files.set('/..%2F..%2Fetc/-snapshot', { bytes: testImage() });
    const cache = trial.cache();
    const { path } = await ensure(cache, trial.spec('/..%2F..%2Fetc/-snapshot'), { name: '../../x' });
    expect(path).toMatch(/\/cache\/sha256-[0-9a-f]{64}\.img$/);
    expect(await trial.left()).toEqual(['DIGEST.img', 'KEY.json']);
  });

  it.each([
    'nbd:127.0.0.1:1',
    'json:{"driver":"file"}',
    'fat:rw:/',
    '/etc/shadow',
    'ssh://x/y',
    'http://a:b@c/d',
    'https://',
    'berth://sha256/../x',
  ])('of a source like %s is refused where images are made', (source) => {
    expect(matches(ImageSpec, testImageSpec('https://example.org/a'))).toBe(true);
    expect(matches(ImageSpec, testImageSpec(source))).toBe(false);
    expect(matches(ImageSpec, testImageSpec('https://example.org/a', { mirrors: [source] }))).toBe(false);
  });
});

describe('a link put where the cache is about to write', () => {
  it('is not written through', async () => {
    const bytes = testImage();
    trial.server.files.set('/a', { bytes, etag: '"1"' });
    const precious = join(trial.directory, 'precious');
    await writeFile(precious, 'precious');
    const cache = trial.cache();
    const { path } = await ensure(cache, trial.spec('/a'));
    const key = (await readdir(join(trial.directory, 'cache'))).find((name) => name.endsWith('.json'))?.slice(0, 32);
    await rm(join(trial.directory, 'cache'), { recursive: true });
    for (const name of [`${key}.unpacking`, `${key}.partial`, `${key}.json.new`, path.split('/').at(-1) ?? '']) {
      await mkdir(join(trial.directory, 'cache'));
      await symlink(precious, join(trial.directory, 'cache', name));
      await ensure(trial.cache(), trial.spec('/a')).catch(() => undefined);
      expect(await readFile(precious, 'utf8'), name).toBe('precious');
      await rm(join(trial.directory, 'cache'), { recursive: true });
    }
  });
});
