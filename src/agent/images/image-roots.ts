// Which paths of the host images may use: the cache's directory and the folders that the operator allows.

import { mkdir, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { ImageSpec } from '../../api/resources/image.ts';
import { DriverError } from '../host/driver-error.ts';
import type { ImageCacheOptions } from './image-cache-options.ts';

/** For an image with a `localPath`: a hidden name beside it, on the disk that its owner chose. */
export async function hiddenPath(
  image: ImageSpec,
  key: string,
  options: ImageCacheOptions,
): Promise<string | undefined> {
  if (image.localPath === undefined) return undefined;
  const path = resolve(image.localPath);
  await refuseOutsideRoots(path, options, 'an image is to be kept at');
  await mkdir(dirname(path), { recursive: true });
  await refuseOutsideRoots(dirname(path), options, 'an image is to be kept in'); // its links can be resolved only now
  return join(dirname(path), `.${basename(path).slice(0, 150)}.${key}.img`);
}

/** Resolves links first: the real place of the file counts. */
export async function refuseOutsideRoots(
  path: string,
  { directory, fileRoots }: ImageCacheOptions,
  what: string,
): Promise<void> {
  const real = await realpath(path).catch(() => resolve(path)); // it does not exist yet
  for (const root of [directory, ...fileRoots]) {
    const realRoot = await realpath(root).catch(() => resolve(root));
    if (real === realRoot || real.startsWith(realRoot.endsWith(sep) ? realRoot : realRoot + sep)) return;
  }
  throw new DriverError(
    'ImageUnavailable',
    `${what} ${path}, which this host does not open to images; put it under ${[directory, ...fileRoots].join(' or ')}, or name its folder in imageRoots of the agent's configuration`,
  );
}
