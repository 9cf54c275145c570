// The image map at start: read, understood, and made true by one commit. What it does not name keeps running.

import { readFile } from 'node:fs/promises';
import type { Logger } from '../../base/log.ts';
import { ApiError } from '../../api/errors.ts';
import { applyImageMap } from '../../core/operations/image-map.ts';
import { decideAndCommit, type Decider } from '../decide.ts';
import { parseImageMap } from './image-map.ts';

/**
 * Throws `ApiError` `InvalidRequest`, with line and column when the file is not an image map, and `AlreadyExists` when it wants a name
 * that an operator gave to another image.
 */
export async function loadImageMap(path: string, decider: Decider, log: Logger): Promise<void> {
  const { images, sizes } = await readImageMap(path);
  const map = { images, sizes: sizes.map(({ name, ...spec }) => ({ name, spec })) };
  const { decision } = await decideAndCommit(decider, (snapshot, ctx) => applyImageMap(snapshot, map, ctx));
  log.info('image map loaded', {
    path,
    images: images.length,
    sizes: sizes.length,
    changed: decision.plan.changes.length,
  });
}

/** Throws `ApiError` `InvalidRequest`. */
export async function readImageMap(path: string): Promise<ReturnType<typeof parseImageMap>> {
  return parseImageMap(await textOf(path));
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    if (!(cause instanceof Error)) throw cause;
    throw new ApiError('InvalidRequest', `the image map ${path} cannot be read: ${cause.message}`, {
      field: 'imageMap',
      cause,
    });
  }
}
