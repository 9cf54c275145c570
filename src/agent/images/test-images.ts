// What tests of the image cache begin with: a folder, an image server on loopback, images, and caches over them.

import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImageSpec } from '../../api/resources/image.ts';
import { silentLogger } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import { systemClock } from '../../base/system.ts';
import { createImageCache, type HostImageCache } from './create-image-cache.ts';
import type { ImageCacheOptions } from './image-cache-options.ts';
import { createHttpGet } from './fetch/http-get.ts';
import type { CachedImage, ImageProgress } from './image-cache.ts';
import { type ImageServer, startImageServer } from './fetch/test-image-server.ts';
import { qcow2File } from './test-qcow2.ts';

export const sha256 = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** A whole qcow2 whose data does not compress: another one each time. */
export function testImage(): Buffer {
  const file = qcow2File();
  randomBytes(65_536).copy(file, 5 * 65_536);
  return file;
}

export const testImageSpec = (source: string, more: Partial<ImageSpec> = {}): ImageSpec => ({
  source,
  decompress: 'none',
  format: 'qcow2',
  nocloud: true,
  architecture: 'amd64',
  aliases: [],
  preload: false,
  defaults: {},
  ...more,
});

export interface ImageTrial {
  readonly directory: string;
  readonly server: ImageServer;
  cache(more?: Partial<ImageCacheOptions>): HostImageCache;
  /** Of what the server has at this path. */
  spec(path: string, more?: Partial<ImageSpec>): ImageSpec;
  /** The files of the cache, with keys and digests blanked. */
  left(): Promise<string[]>;
  end(): Promise<void>;
}

export async function startImageTrial(): Promise<ImageTrial> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-images-'));
  const server = await startImageServer();
  return {
    directory,
    server,
    cache: (more = {}) =>
      createImageCache({
        directory: join(directory, 'cache'),
        fileRoots: [directory],
        get: createHttpGet({ privateAddresses: 'named' }),
        clock: systemClock,
        prng: seededPrng(1),
        log: silentLogger,
        ...more,
      }),
    spec: (path, more = {}) => testImageSpec(path.includes(':') ? path : `${server.url}${path}`, more),
    left: async () =>
      (await readdir(join(directory, 'cache')))
        .map((name) => name.replace(/^[0-9a-f]{32}/, 'KEY').replace(/^sha256-[0-9a-f]{64}/, 'DIGEST'))
        .sort(),
    async end() {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export function ensure(
  cache: HostImageCache,
  image: ImageSpec,
  options: { signal?: AbortSignal; onProgress?: (progress: ImageProgress) => void; name?: string } = {},
): Promise<CachedImage> {
  return cache.ensure(options.name ?? 'debian', image, {
    signal: options.signal ?? new AbortController().signal,
    ...(options.onProgress ? { onProgress: options.onProgress } : {}),
  });
}
