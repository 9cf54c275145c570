// Unpacking an image as hosts do it: zstd, both checksums, holes for zeros, and on disk when it is done. The peer is the zstd program, which
// writes the same file and waits for the disk the same way, but computes no checksum.

import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readSync, statSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createImageCache } from '../src/agent/images/create-image-cache.ts';
import { createHttpGet } from '../src/agent/images/fetch/http-get.ts';
import { testImageSpec } from '../src/agent/images/test-images.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemClock, systemPrng } from '../src/base/system.ts';
import { type Emit, median } from './row.ts';

const rounds = 5;
const imageBytes = 1024 * 1024 * 1024;

/** `directory` is on the disk that is measured. */
export async function decompress(parent: string, emit: Emit): Promise<void> {
  const directory = await mkdtemp(join(parent, 'decompress-'));
  try {
    const raw = join(directory, 'disk.raw');
    const packed = `${raw}.zst`;
    makeDisk(raw);
    execFileSync('zstd', ['-q', '-3', raw, '-o', packed]);
    await rm(raw);
    const ours: number[] = [];
    const peers: number[] = [];
    for (let round = 0; round < rounds; round++) {
      ours.push(await timed(() => throughCache(join(directory, 'cache'), packed)));
      peers.push(
        await timed(async () => {
          execFileSync('zstd', ['-q', '-d', '-f', packed, '-o', raw]);
          execFileSync('sync', [raw]);
        }),
      );
      await rm(raw);
      await rm(join(directory, 'cache'), { recursive: true });
    }
    const value = median(ours) / median(peers);
    const megabytes = imageBytes / 1e6;
    emit({
      suite: 'guests',
      name: 'decompress_ratio',
      value,
      unit: 'x',
      better: 'lower',
      goal: 1.15,
      peer: 1,
      ratio: value,
    });
    emit({
      suite: 'guests',
      name: 'decompress_mb_per_s',
      value: megabytes / (median(ours) / 1000),
      unit: 'MB/s',
      better: 'higher',
      goal: megabytes / (median(peers) / 1000) / 1.15,
      peer: megabytes / (median(peers) / 1000),
      ratio: median(peers) / median(ours),
    });
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function throughCache(directory: string, packed: string): Promise<void> {
  const cache = createImageCache({
    directory,
    fileRoots: ['/'],
    get: createHttpGet({ privateAddresses: 'deny' }),
    clock: systemClock,
    prng: systemPrng(),
    log: silentLogger,
  });
  const image = testImageSpec(pathToFileURL(packed).href, { decompress: 'zstd', format: 'raw' });
  await cache.ensure('bench', image, { signal: new AbortController().signal });
}

/** What a guest's disk is made of: programs, and between them room that nothing has written to. */
function makeDisk(path: string): void {
  const disk = openSync(path, 'w');
  const piece = Buffer.alloc(1024 * 1024);
  let at = 0;
  const libraries = readdirSync('/usr/lib/x86_64-linux-gnu')
    .map((name) => join('/usr/lib/x86_64-linux-gnu', name))
    .filter((library) => statSync(library, { throwIfNoEntry: false })?.isFile() === true);
  for (let i = 0; at < imageBytes; i++) {
    const file = openSync(libraries[i % libraries.length] ?? '', 'r');
    for (let from = 0; at < imageBytes; ) {
      const bytes = readSync(file, piece, 0, Math.min(piece.length, imageBytes - at), from);
      if (bytes === 0) break;
      writeSync(disk, piece, 0, bytes, at);
      from += bytes;
      at += bytes;
      if (at % 5 === 0) at = Math.min(imageBytes, at + piece.length); // a hole
    }
    closeSync(file);
  }
  writeSync(disk, Buffer.alloc(512), 0, 512, imageBytes - 512);
  closeSync(disk);
}

async function timed(act: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}
