// The tiny image, built once for all tests and kept in the checkout's .berth folder.

import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildImage } from '../src/agent/images/build/build.ts';
import type { ImageCache } from '../src/agent/images/image-cache.ts';

export const imageDirectory = fileURLToPath(new URL('../.berth/images', import.meta.url));

let built: ReturnType<typeof buildImage> | undefined;

export function tinyImage() {
  built ??= buildImage('tiny', { directory: imageDirectory });
  return built;
}

/** A cache in which every image is the tiny one: a copy in `directory`, because a guest's own user must reach it. */
export async function tinyImages(directory: string): Promise<ImageCache> {
  const { path } = await tinyImage();
  const own = join(directory, 'tiny.qcow2');
  await copyFile(path, own);
  return {
    ensure: async () => ({
      path: own,
      format: 'qcow2',
      digest: `sha256:${'0'.repeat(64)}`,
      virtualSizeBytes: 32 * 1024 * 1024,
    }),
    list: async () => [],
  };
}
