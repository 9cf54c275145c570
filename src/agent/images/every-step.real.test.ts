// Agents that die at every step of bringing an image into the cache of their host, and of taking one away.

import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { expect, it } from 'vitest';
import type { ImageSpec } from '../../api/resources/image.ts';
import type { Clock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import { systemClock } from '../../base/system.ts';
import { atEveryStep } from '../test-every-step.ts';
import { createImageCache, type HostImageCache } from './create-image-cache.ts';
import { createHttpGet } from './fetch/http-get.ts';
import { startImageServer } from './fetch/test-image-server.ts';
import { qcow2File } from './test-qcow2.ts';

const never = new AbortController().signal;
const content = qcow2File();
const packed = zstdCompressSync(content);
const sha256 = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** What is asked for, in this order: packed, the same content from elsewhere, at a place of its own, and that nothing stays that need not. */
const all = ['packed', 'twin', 'placed', 'clean'] as const;
type Wish = (typeof all)[number];

it.each<[string, boolean, readonly Wish[]]>([
  ['by itself', false, all],
  ['by zstd', true, ['packed', 'clean']],
])(
  'an agent that unpacks %s and dies at any step is followed by one that has whole images and nothing else',
  async (_, zstdProgram, wishes) => {
    const server = await startImageServer();
    server.files.set('/packed', { bytes: packed, etag: '"1"' });
    server.files.set('/plain', { bytes: content, etag: '"2"' });
    const specs = (directory: string): Readonly<Record<Exclude<Wish, 'clean'>, ImageSpec>> => {
      const spec: ImageSpec = {
        source: `${server.url}/plain`,
        decompress: 'none',
        format: 'qcow2',
        nocloud: true,
        architecture: 'amd64',
        aliases: [],
        preload: false,
        defaults: {},
      };
      return {
        packed: { ...spec, source: `${server.url}/packed`, decompress: 'zstd', checksum: sha256(packed) },
        twin: spec,
        placed: { ...spec, localPath: join(directory, 'placed', 'own.qcow2') },
      };
    };
    const open = (directory: string, clock: Clock): HostImageCache =>
      createImageCache({
        directory: join(directory, 'cache'),
        fileRoots: [directory],
        get: createHttpGet({ privateAddresses: 'named' }),
        clock,
        prng: seededPrng(1),
        log: silentLogger,
        bytesMax: 1,
        zstdProgram,
      });
    const carryOut = async (directory: string, clock: Clock, wish: Wish): Promise<void> => {
      const cache = open(directory, clock); // one that has just been asked for an image would keep it
      if (wish === 'clean') return cache.clean({ kept: [] });
      const { path, digest } = await cache.ensure(wish, specs(directory)[wish], { signal: never });
      expect(digest).toBe(sha256(content));
      expect(sha256(await readFile(path))).toBe(digest);
    };
    const left = async (directory: string): Promise<string[]> => {
      const names = await readdir(directory, { recursive: true });
      return names.map((name) => name.replaceAll(/[0-9a-f]{32}(?=\.)/g, 'KEY')).sort();
    };
    const inFolder = async (act: (directory: string) => Promise<void>): Promise<void> => {
      const directory = await mkdtemp(join(tmpdir(), 'berth-images-'));
      try {
        await mkdir(join(directory, 'placed'));
        await act(directory);
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    };

    /** After each wish, when no agent died. */
    const files = new Map<Wish, readonly string[]>();
    await inFolder(async (directory) => {
      for (const wish of wishes) {
        await carryOut(directory, systemClock, wish);
        files.set(wish, await left(directory));
      }
    });
    const steps = await atEveryStep(
      (life) =>
        inFolder(async (directory) => {
          let wish: Wish = 'packed';
          await life.live(async () => {
            for (wish of wishes) await carryOut(directory, life.clock, wish);
          });
          await life.kill();
          await carryOut(directory, systemClock, wish);
          expect(await left(directory)).toEqual(files.get(wish));
        }),
      { atOnce: 4 },
    );
    for (const each of [
      /^rename sha256-.*\.img/,
      ...(zstdProgram ? [] : [/^link /]),
      /^rm sha256-.*\.img/,
      ...(zstdProgram ? [/^start .*zstd/] : []),
    ])
      expect(steps).toContainEqual(expect.stringMatching(each));
    await server.close();
  },
  300_000,
);
