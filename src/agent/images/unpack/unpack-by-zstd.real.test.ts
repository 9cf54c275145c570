// zstd by its own program and by ourselves: what comes out, and what is refused, is the same.

import { randomBytes } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { constants, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../base/system.ts';
import { type ImageTrial, ensure, sha256, startImageTrial, testImage } from '../test-images.ts';
import { hasZstd, writeByZstd } from './unpack-by-zstd.ts';
import { cutAtFrames } from './zstd-frames.ts';

const program = await hasZstd();
const mebibyte = 1024 * 1024;
const zstd = { decompress: 'zstd', format: 'raw' } as const;

describe.each([
  { how: 'by its program', zstdProgram: true },
  { how: 'by ourselves', zstdProgram: false },
])('zstd, unpacked $how', ({ zstdProgram }) => {
  // The program is one of the packages of tests; without it this half has nothing to be tried with.
  beforeEach((test) => test.skip(zstdProgram && !program, 'zstd is not installed'));
  let trial: ImageTrial;
  beforeEach(async () => {
    trial = await startImageTrial();
  });
  afterEach(() => trial.end());
  const cache = (more = {}) => trial.cache({ zstdProgram, ...more });

  it('is what was packed, with holes for zeros, in one frame or many', async () => {
    const disk = Buffer.alloc(24 * mebibyte);
    for (const at of [0, 9, 23]) randomBytes(mebibyte).copy(disk, at * mebibyte);
    const skippable = Buffer.concat([Buffer.from('502a4d1803000000', 'hex'), Buffer.from('abc')]);
    const frames = [disk.subarray(0, 10 * mebibyte), disk.subarray(10 * mebibyte)].map((part) =>
      zstdCompressSync(part),
    );
    const packings = [
      zstdCompressSync(disk),
      Buffer.concat([skippable, ...frames, skippable, zstdCompressSync(Buffer.alloc(0))]),
    ];
    for (const [i, packed] of packings.entries()) {
      trial.server.files.set(`/${i}`, { bytes: packed });
      const seen = await ensure(cache(), trial.spec(`/${i}`, { ...zstd, checksum: sha256(packed) }));
      expect(seen.digest).toBe(sha256(disk));
      expect((await readFile(seen.path)).equals(disk)).toBe(true);
      expect(await stat(seen.path)).toMatchObject({ size: disk.length, mode: 0o100444 });
      expect((await stat(seen.path)).blocks * 512).toBeLessThan(14 * mebibyte);
    }
  });

  it('keeps a hole at its end', async () => {
    const disk = Buffer.alloc(8 * mebibyte);
    randomBytes(512).copy(disk);
    trial.server.files.set('/a', { bytes: zstdCompressSync(disk) });
    expect(await ensure(cache(), trial.spec('/a', zstd))).toMatchObject({
      digest: sha256(disk),
      virtualSizeBytes: disk.length,
    });
  });

  const bad: readonly (readonly [string, () => Buffer, string])[] = [
    ['cut off', () => zstdCompressSync(randomBytes(mebibyte)).subarray(0, 500_000), 'ImageInvalid'],
    ['cut off in its last checksum', () => zstdCompressSync(testImage()).subarray(0, -1), 'ImageInvalid'],
    [
      'with something after it',
      () => Buffer.concat([zstdCompressSync(testImage()), Buffer.from('more')]),
      'ImageInvalid',
    ],
    ['none', () => randomBytes(100_000), 'ImageInvalid'],
    ['empty', () => Buffer.alloc(0), 'ImageInvalid'],
    [
      'with damage in the middle',
      () => damaged(zstdCompressSync(randomBytes(mebibyte), { params: { [constants.ZSTD_c_checksumFlag]: 1 } })),
      'ImageInvalid',
    ],
    ['with a window of 2 GiB', () => Buffer.from('28b52ffd00a8110000aabb', 'hex'), 'ImageInvalid'],
    ['two hundred times its size', () => zstdCompressSync(Buffer.alloc(1200 * mebibyte)), 'ImageTooLarge'],
  ];
  it.each(bad)('%s is refused, and nothing of it stays', async (_, make, code) => {
    trial.server.files.set('/a', { bytes: make() });
    await expect(ensure(cache(), trial.spec('/a', zstd))).rejects.toMatchObject({ code });
    expect(await trial.left()).toEqual([]);
  });

  it('is taken up to the very limit, and no byte further', async () => {
    const disk = Buffer.concat([randomBytes(mebibyte / 2), Buffer.alloc(mebibyte / 2)]);
    trial.server.files.set('/a', { bytes: zstdCompressSync(disk) });
    for (const [limit, code] of [
      [disk.length, 'none'],
      [disk.length - 1, 'ImageTooLarge'],
    ] as const) {
      const own = cache({ maxBytes: limit, directory: `${trial.directory}/${limit}` });
      const outcome = await ensure(own, trial.spec('/a', zstd)).then(
        () => 'none',
        (error: { code: string }) => error.code,
      );
      expect([limit, outcome]).toEqual([limit, code]);
    }
  });

  it('goes on where the line broke, and is given up in the middle', async () => {
    const disk = randomBytes(8 * mebibyte);
    const packed = zstdCompressSync(disk);
    trial.server.files.set('/a', { bytes: packed, etag: '"1"', stallAfter: 4_000_000, faults: 1 });
    const seen = await ensure(cache({ stallTimeoutMs: 1000 }), trial.spec('/a', zstd));
    expect(seen.digest).toBe(sha256(disk));
    expect(trial.server.requests).toEqual(['GET /a whole', 'GET /a bytes=4000000-']);

    trial.server.files.set('/b', { bytes: packed, etag: '"1"', stallAfter: 4_000_000 });
    const leaver = new AbortController();
    const given = ensure(cache(), trial.spec('/b', zstd), {
      signal: leaver.signal,
      onProgress: ({ doneBytes }) => doneBytes > 0 && leaver.abort(),
    });
    await expect(given).rejects.toMatchObject({ code: 'Aborted' });
    // What came is kept for the next try; nothing unpacked is.
    expect((await trial.left()).filter((name) => name.endsWith('.unpacking'))).toEqual([]);
    expect(await trial.left()).toContain('KEY.partial');
  });
});

describe('a zstd stream that would unpack to far more than it may', () => {
  const gibibyte = 1024 * mebibyte;
  /** Of 64 GiB of zeros, in 512 pieces: blocks of 128 KiB, each told by one byte. */
  const bomb = () => {
    const block = Buffer.from('02001000', 'hex');
    const piece = Buffer.concat(Array.from({ length: 1024 }, () => block));
    const seen = { pieces: 0 };
    async function* packed(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('28b52ffd0058', 'hex');
      for (; seen.pieces < 512; seen.pieces++) yield piece;
    }
    return { seen, packed: packed() };
  };
  let trial: ImageTrial;
  beforeEach(async () => {
    trial = await startImageTrial();
  });
  afterEach(() => trial.end());
  const write = (packed: AsyncIterable<Uint8Array>, allowedInAll: number) =>
    writeByZstd({
      path: `${trial.directory}/out`,
      packed,
      limits: { bytesMax: 1024 * gibibyte, allowedBytes: () => gibibyte, allowedInAll: () => allowedInAll },
      onWritten: () => {},
      clock: systemClock,
      signal: new AbortController().signal,
    });

  it.skipIf(!program)('is not given to the program any more once that is certain', async () => {
    const { seen, packed } = bomb();
    await expect(write(packed, gibibyte)).rejects.toMatchObject({ code: 'ImageTooLarge' });
    expect(seen.pieces).toBeLessThanOrEqual(gibibyte / (128 * mebibyte) + 1);
    expect((await stat(`${trial.directory}/out`)).size).toBeLessThanOrEqual(gibibyte + 1);
  });

  it.skipIf(!program)('is stopped where the program stands, when nobody knows how long the source is', async () => {
    const { seen, packed } = bomb();
    await expect(write(packed, Number.POSITIVE_INFINITY)).rejects.toMatchObject({ code: 'ImageTooLarge' });
    expect(seen.pieces).toBeLessThan(512);
  });

  it('is known by what its frames say: their length, or that of each block', async () => {
    const told: number[] = [];
    const drain = async (packed: Iterable<Uint8Array>): Promise<number> => {
      async function* source(): AsyncGenerator<Uint8Array> {
        yield* packed;
      }
      for await (const _ of cutAtFrames(source(), (bytes) => told.push(bytes)));
      return told.at(-1) ?? 0;
    };
    for (const length of [0, 100, 300, 70_000, 5 * mebibyte])
      expect(await drain([zstdCompressSync(Buffer.alloc(length))]), String(length)).toBe(length);
    const [one, two] = [zstdCompressSync(Buffer.alloc(1000)), zstdCompressSync(randomBytes(2000))];
    expect(await drain([one, two])).toBe(3000);
    // A frame that does not say: a raw block of 3 bytes, one of 5 times the same.
    expect(await drain([Buffer.from('28b52ffd00581800006162632b000061', 'hex')])).toBe(8);
  });
});

function damaged(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.fill(0xff, 500_000, 500_064);
  return copy;
}
