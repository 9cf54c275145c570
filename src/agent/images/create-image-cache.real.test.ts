import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ImageSpec } from '../../api/resources/image.ts';
import { silentLogger } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import { systemClock } from '../../base/system.ts';
import { createImageCache, type HostImageCache } from './create-image-cache.ts';
import type { ImageCacheOptions } from './image-cache-options.ts';
import { createHttpGet } from './fetch/http-get.ts';
import type { CachedImage, ImageCache, ImageProgress } from './image-cache.ts';
import { type ImageServer, startImageServer } from './fetch/test-image-server.ts';
import { qcow2File } from './test-qcow2.ts';

let directory = '';
let server: ImageServer;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-images-'));
  server = await startImageServer();
});
afterEach(async () => {
  await server.close();
  await rm(directory, { recursive: true, force: true });
});

const sha256 = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
/** A whole qcow2 whose data does not compress, so that packed files have a middle to cut. */
const image = (): Buffer => {
  const file = qcow2File();
  randomBytes(65_536).copy(file, 5 * 65_536);
  return file;
};
const spec = (path: string, more: Partial<ImageSpec> = {}): ImageSpec => ({
  source: path.includes(':') ? path : `${server.url}${path}`,
  decompress: 'none',
  format: 'qcow2',
  nocloud: true,
  architecture: 'amd64',
  aliases: [],
  preload: false,
  defaults: {},
  ...more,
});
const cacheIn = (more: Partial<ImageCacheOptions> = {}): HostImageCache =>
  createImageCache({
    directory: join(directory, 'cache'),
    fileRoots: [directory],
    get: createHttpGet({ privateAddresses: 'named' }),
    clock: systemClock,
    prng: seededPrng(1),
    log: silentLogger,
    stallTimeoutMs: 30_000,
    ...more,
  });
const ensure = (
  cache: ImageCache,
  what: ImageSpec,
  options: { signal?: AbortSignal; onProgress?: (progress: ImageProgress) => void; name?: string } = {},
): Promise<CachedImage> =>
  cache.ensure(options.name ?? 'debian', what, {
    signal: options.signal ?? new AbortController().signal,
    ...(options.onProgress ? { onProgress: options.onProgress } : {}),
  });
/** Breaks the connection as soon as something has come over it: not earlier, for fetch discards what was not read yet. */
const cutWhenSomethingCame = ({ stage, doneBytes }: ImageProgress): void => {
  if (stage === 'downloading' && doneBytes > 0) server.cut();
};
const left = async (): Promise<string[]> =>
  (await readdir(join(directory, 'cache')))
    .map((name) => name.replace(/^[0-9a-f]{32}/, 'KEY').replace(/^sha256-[0-9a-f]{64}/, 'DIGEST'))
    .sort();

describe('an image that is not here yet', () => {
  it('is fetched, checked and published whole', async () => {
    const bytes = image();
    server.files.set('/a.qcow2', { bytes });
    const seen: ImageProgress[] = [];
    const cached = await ensure(cacheIn(), spec('/a.qcow2', { checksum: sha256(bytes) }), {
      onProgress: (one) => seen.push(one),
    });
    expect(cached).toMatchObject({ format: 'qcow2', digest: sha256(bytes), virtualSizeBytes: 1024 * 1024 });
    expect(await readFile(cached.path)).toEqual(bytes);
    expect((await stat(cached.path)).mode & 0o777).toBe(0o444);
    expect((await stat(join(directory, 'cache'))).mode & 0o777).toBe(0o700);
    expect(await left()).toEqual(['DIGEST.img', 'KEY.json']);
    expect(seen).toContainEqual({ stage: 'downloading', doneBytes: bytes.length, totalBytes: bytes.length });
    expect(seen.at(-1)?.stage).toBe('checking');
  });

  it.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ] as const)('is unpacked from %s on the way', async (decompress, pack) => {
    const bytes = image();
    const packed = pack(bytes);
    server.files.set('/a', { bytes: packed });
    const cached = await ensure(cacheIn(), spec('/a', { decompress, checksum: sha256(packed) }));
    expect(cached.digest).toBe(sha256(bytes));
    expect(await readFile(cached.path)).toEqual(bytes);
  });

  it('may come from a file of this host', async () => {
    const bytes = image();
    await writeFile(join(directory, 'own.qcow2'), bytes);
    const cached = await ensure(cacheIn(), spec(pathToFileURL(join(directory, 'own.qcow2')).href));
    expect(await readFile(cached.path)).toEqual(bytes);
  });

  it('is fetched once for all who ask at once', async () => {
    server.files.set('/a', { bytes: image() });
    const cache = cacheIn();
    const answers = await Promise.all(['one', 'two', 'three'].map((name) => ensure(cache, spec('/a'), { name })));
    expect(new Set(answers.map((one) => one.path)).size).toBe(1);
    expect(server.requests).toEqual(['GET /a whole']);
    expect((await cache.list()).map((one) => one.name).sort()).toEqual(['one', 'three', 'two']);
  });

  it('is fetched through a redirect', async () => {
    server.files.set('/a', { bytes: Buffer.alloc(0), status: 302, headers: { location: '/b' } });
    server.files.set('/b', { bytes: image() });
    expect(await ensure(cacheIn(), spec('/a'))).toMatchObject({ virtualSizeBytes: 1024 * 1024 });
  });

  it('keeps long runs of zeros as holes', async () => {
    const bytes = Buffer.concat([randomBytes(65_536), Buffer.alloc(64 * 1024 * 1024)]);
    server.files.set('/raw', { bytes: zstdCompressSync(bytes) });
    const cached = await ensure(cacheIn(), spec('/raw', { decompress: 'zstd', format: 'raw' }));
    const { size, blocks } = await stat(cached.path);
    expect(size).toBe(bytes.length);
    expect(blocks * 512).toBeLessThan(4 * 1024 * 1024);
    expect(cached.digest).toBe(sha256(bytes));
  });
});

describe('a download that breaks', () => {
  it('goes on where it was', async () => {
    const bytes = image();
    server.files.set('/a', { bytes, etag: '"1"', stallAfter: 100_000, faults: 2 });
    const cached = await ensure(cacheIn(), spec('/a', { checksum: sha256(bytes) }), {
      onProgress: cutWhenSomethingCame,
    });
    expect(cached.digest).toBe(sha256(bytes));
    expect(server.requests.length).toBe(3);
    expect(server.requests.slice(1).every((one) => /bytes=[1-9]/.test(one))).toBe(true);
  });

  it('goes on in the next run, also when it is unpacked on the way', async () => {
    const bytes = image();
    const packed = zstdCompressSync(bytes);
    server.files.set('/a', { bytes: packed, etag: '"1"', stallAfter: 50_000, faults: 1 });
    const what = spec('/a', { decompress: 'zstd', checksum: sha256(packed) });
    await expect(ensure(cacheIn({ attemptsMax: 1 }), what, { onProgress: cutWhenSomethingCame })).rejects.toMatchObject(
      { code: 'ImageUnavailable' },
    );
    expect(await left()).toEqual(['KEY.partial', 'KEY.source.json']);
    expect((await ensure(cacheIn(), what)).digest).toBe(sha256(bytes));
    expect(server.requests.at(-1)).toMatch(/bytes=[1-9]/);
    expect(await left()).toEqual(['DIGEST.img', 'KEY.json']);
  });

  it('begins anew when the file on the server has changed meanwhile', async () => {
    const [before, after] = [image(), image()];
    const file = { bytes: before, etag: '"1"', stallAfter: 100_000, faults: 1, onRequest: () => {} };
    file.onRequest = () => {
      if (server.requests.length === 2) Object.assign(file, { bytes: after, etag: '"2"' });
    };
    server.files.set('/a', file);
    const cached = await ensure(cacheIn(), spec('/a'), { onProgress: cutWhenSomethingCame });
    expect(await readFile(cached.path)).toEqual(after);
  });

  it('begins anew when the server cannot resume', async () => {
    const bytes = image();
    server.files.set('/a', { bytes, stallAfter: 100_000, faults: 1 });
    expect((await ensure(cacheIn(), spec('/a'), { onProgress: cutWhenSomethingCame })).digest).toBe(sha256(bytes));
    expect(server.requests).toEqual(['GET /a whole', 'GET /a whole']);
  });

  it('is given up when nothing comes any more', async () => {
    const file = { bytes: image(), etag: '"1"', stallAfter: 1000, onRequest: () => {} };
    file.onRequest = () => {
      if (server.requests.length > 1) file.stallAfter = 0;
    };
    server.files.set('/a', file);
    await expect(ensure(cacheIn({ stallTimeoutMs: 50, attemptsMax: 2 }), spec('/a'))).rejects.toMatchObject({
      code: 'ImageUnavailable',
      message: expect.stringContaining('nothing came for 50 ms'),
    });
  });

  it.each([404, 403, 410])('is not tried again after a plain %i', async (status) => {
    server.files.set('/a', { bytes: Buffer.from('no'), status });
    await expect(ensure(cacheIn(), spec('/a'))).rejects.toMatchObject({
      code: 'ImageUnavailable',
      message: expect.stringContaining(String(status)),
    });
    expect(server.requests.length).toBe(1);
    expect(existsSync(join(directory, 'cache', 'KEY.img'))).toBe(false);
  });

  it('ends at once when its only caller leaves, and not while another waits', async () => {
    server.files.set('/a', { bytes: image(), etag: '"1"', stallAfter: 1000, faults: 1 });
    const cache = cacheIn({ stallTimeoutMs: 200 });
    const leaver = new AbortController();
    const both = Promise.allSettled([ensure(cache, spec('/a'), { signal: leaver.signal }), ensure(cache, spec('/a'))]);
    leaver.abort();
    expect(await both).toMatchObject([{ status: 'rejected', reason: { code: 'Aborted' } }, { status: 'fulfilled' }]);
  });

  it('can be asked for again right after it was given up', async () => {
    let arrived = (): void => {};
    const first = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    server.files.set('/a', { bytes: image(), stallAfter: 1000, faults: 1, onRequest: () => arrived() });
    const cache = cacheIn();
    const leaver = new AbortController();
    const given = ensure(cache, spec('/a'), { signal: leaver.signal });
    await first;
    leaver.abort();
    await expect(given).rejects.toMatchObject({ code: 'Aborted' });
    expect(await ensure(cache, spec('/a'))).toMatchObject({ format: 'qcow2' });
  });

  it('hides the secrets of its URL', async () => {
    const source = `${server.url}/a?token=secret`;
    await expect(ensure(cacheIn(), spec(source))).rejects.toMatchObject({
      message: expect.not.stringContaining('secret'),
    });
  });
});

describe('a bad image', () => {
  const refused: readonly (readonly [string, string, () => Buffer, Partial<ImageSpec>])[] = [
    ['with another checksum', 'ImageChecksumMismatch', image, { checksum: sha256(Buffer.from('other')) }],
    ['that is empty', 'ImageInvalid', () => Buffer.alloc(0), {}],
    ['that is an error page', 'ImageInvalid', () => Buffer.from('<html>not here'), {}],
    ['of qcow2 that was cut off', 'ImageInvalid', () => image().subarray(0, 300_000), {}],
    ['with a backing file', 'ImageInvalid', () => qcow2File({ backingFileOffset: 112n, backingFileSize: 11 }), {}],
    ['of 8 PiB in a small file', 'ImageInvalid', () => qcow2File({ virtualSize: 8n * 1024n ** 5n }), {}],
    ['of qcow2 that says it is raw', 'ImageInvalid', image, { format: 'raw' }],
    ['of gzip that was cut off', 'ImageInvalid', () => gzipSync(image()).subarray(0, 40_000), { decompress: 'gzip' }],
    [
      'of zstd that was cut off',
      'ImageInvalid',
      () => zstdCompressSync(image()).subarray(0, 40_000),
      { decompress: 'zstd' },
    ],
    ['of xz that is none', 'ImageInvalid', image, { decompress: 'xz' }],
    [
      'of zstd with something after it',
      'ImageInvalid',
      () => Buffer.concat([zstdCompressSync(image()), Buffer.from('more than this')]),
      { decompress: 'zstd' },
    ],
    [
      'that unpacks to more than allowed',
      'ImageTooLarge',
      () => gzipSync(Buffer.alloc(8 * 1024 * 1024)),
      { decompress: 'gzip', format: 'raw' },
    ],
    ['that is packed but says it is not', 'ImageInvalid', () => gzipSync(image()), {}],
  ];
  it.each(refused)('%s is refused as %s and leaves nothing', async (_, code, bytes, more) => {
    server.files.set('/a', { bytes: bytes(), etag: '"1"' });
    await expect(ensure(cacheIn({ maxBytes: 4 * 1024 * 1024 }), spec('/a', more))).rejects.toMatchObject({ code });
    expect(await left()).toEqual([]);
  });

  it('larger than allowed is refused before it is fetched', async () => {
    server.files.set('/a', { bytes: Buffer.alloc(5 * 1024 * 1024, 1) });
    await expect(ensure(cacheIn({ maxBytes: 1024 * 1024 }), spec('/a'))).rejects.toMatchObject({
      code: 'ImageTooLarge',
    });
    await writeFile(join(directory, 'big'), Buffer.alloc(5 * 1024 * 1024, 1));
    const own = spec(pathToFileURL(join(directory, 'big')).href);
    await expect(ensure(cacheIn({ maxBytes: 1024 * 1024 }), own)).rejects.toMatchObject({ code: 'ImageTooLarge' });
  });

  it('that unpacks to two hundred times its size is a bomb', async () => {
    const bomb = zstdCompressSync(Buffer.alloc(1200 * 1024 * 1024));
    server.files.set('/a', { bytes: bomb });
    await expect(ensure(cacheIn(), spec('/a', { decompress: 'zstd', format: 'raw' }))).rejects.toMatchObject({
      code: 'ImageTooLarge',
      message: expect.stringContaining('far more than its packed size'),
    });
    expect(await left()).toEqual([]);
  });

  it('from outside the folders opened to images is refused, also through a link', async () => {
    await symlink('/etc/passwd', join(directory, 'link'));
    for (const path of ['/etc/passwd', join(directory, 'link'), `${directory}/../../etc/passwd`]) {
      await expect(ensure(cacheIn(), spec(`file://${path}`, { format: 'raw' })), path).rejects.toMatchObject({
        code: 'ImageUnavailable',
        message: expect.stringContaining('does not open to images'),
      });
    }
    server.files.set('/a', { bytes: image() });
    await expect(ensure(cacheIn(), spec('/a', { localPath: '/etc/berth.img' }))).rejects.toMatchObject({
      code: 'ImageUnavailable',
    });
    expect(existsSync('/etc/berth.img')).toBe(false);
  });

  it('that is a folder or a missing file says so', async () => {
    await expect(ensure(cacheIn(), spec(pathToFileURL(directory).href))).rejects.toMatchObject({
      code: 'ImageUnavailable',
    });
    await expect(ensure(cacheIn(), spec(pathToFileURL(join(directory, 'none')).href))).rejects.toMatchObject({
      code: 'ImageUnavailable',
    });
  });
});

describe('a published image', () => {
  it('is used again after a restart without asking anyone', async () => {
    server.files.set('/a', { bytes: image() });
    const first = await ensure(cacheIn(), spec('/a'));
    server.files.delete('/a');
    const later = cacheIn();
    expect(await later.list()).toEqual([
      { name: 'debian', digest: first.digest, sizeBytes: 393_216, checksum: first.digest },
    ]);
    expect(await ensure(later, spec('/a'))).toEqual(first);
  });

  it('is fetched anew when someone touched it', async () => {
    const bytes = image();
    server.files.set('/a', { bytes });
    const cache = cacheIn();
    const { path } = await ensure(cache, spec('/a'));
    await truncate(path, 1000);
    expect(await readFile((await ensure(cache, spec('/a'))).path)).toEqual(bytes);
    await rm(path);
    expect(await readFile((await ensure(cacheIn(), spec('/a'))).path)).toEqual(bytes);
  });

  it('stays for its guests when the name gets another source', async () => {
    const [before, after] = [image(), image()];
    server.files.set('/a', { bytes: before });
    server.files.set('/b', { bytes: after });
    const cache = cacheIn();
    const old = await ensure(cache, spec('/a'));
    const current = await ensure(cache, spec('/b'));
    expect(await readFile(old.path)).toEqual(before);
    expect(await cache.list()).toEqual([
      { name: 'debian', digest: current.digest, sizeBytes: after.length, checksum: current.digest },
    ]);
  });

  it('stands under its localPath too, which a newer one takes over', async () => {
    const [before, after] = [image(), image()];
    server.files.set('/a', { bytes: before });
    server.files.set('/b', { bytes: after });
    const localPath = join(directory, 'images', 'debian.img');
    const cache = cacheIn();
    const old = await ensure(cache, spec('/a', { localPath }));
    expect(await readFile(localPath)).toEqual(before);
    await ensure(cache, spec('/b', { localPath }));
    expect(await readFile(localPath)).toEqual(after);
    expect(await readFile(old.path)).toEqual(before);
  });

  it('never takes the place of a file that is not ours', async () => {
    server.files.set('/a', { bytes: image() });
    const localPath = join(directory, 'precious.img');
    await writeFile(localPath, 'precious');
    await expect(ensure(cacheIn(), spec('/a', { localPath }))).rejects.toMatchObject({
      code: 'ImageInvalid',
      message: expect.stringContaining('move it away'),
    });
    expect(await readFile(localPath, 'utf8')).toBe('precious');
    expect((await readdir(directory)).sort()).toEqual(['cache', 'precious.img']);
  });
});

describe('what an earlier run left half-done', () => {
  it('is removed, and nothing else', async () => {
    server.files.set('/a', { bytes: image() });
    await ensure(cacheIn(), spec('/a'));
    const key = '0123456789abcdef0123456789abcdef';
    const old = new Date(systemClock.nowMs() - 48 * 3_600_000);
    for (const name of [`${key}.img`, `${key}.img.unpacking`, `${key}.partial`, 'notes.txt']) {
      await writeFile(join(directory, 'cache', name), 'x');
      await utimes(join(directory, 'cache', name), old, old);
    }
    await writeFile(join(directory, 'cache', `${key}.json`), '{"half":');
    await cacheIn().list();
    expect(await left()).toEqual(['DIGEST.img', 'KEY.json', 'notes.txt']);
  });
});

describe('a full disk', () => {
  it('is told as such and leaves nothing', async ({ skip }) => {
    const small = join(directory, 'cache');
    await mkdir(small);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', small], { stdio: 'ignore' });
    } catch {
      skip('mounting a small disk needs root');
    }
    try {
      server.files.set('/a', { bytes: image(), etag: '"1"' });
      await expect(ensure(cacheIn(), spec('/a'))).rejects.toMatchObject({ code: 'DiskFull' });
      expect(await left()).toEqual([]);
    } finally {
      execFileSync('umount', [small]);
    }
  });
});
