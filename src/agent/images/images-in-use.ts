// Which files of the cache take how much of the disk, and which of them guests use.

import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describeError } from '../../base/log.ts';
import type { CachedFile } from './choose-removals.ts';
import type { ImageCacheOptions } from './image-cache-options.ts';
import type { ImageRecord } from './image-record.ts';
import { type FoundReferences, findImageReferences, type ImageReference } from './image-references.ts';
import { recordPath } from './record-files.ts';

export async function findReferences({ guestRoots }: ImageCacheOptions): Promise<FoundReferences> {
  try {
    return await findImageReferences((await guestRoots?.()) ?? []);
  } catch (error) {
    return { complete: false, reason: describeError(error) };
  }
}

/** Whether the disk of this guest is an overlay of this image. */
export function liesUpon(reference: ImageReference, { path, digest }: ImageRecord): boolean {
  return reference.paths.includes(path) || reference.digest === digest;
}

interface Facts {
  readonly directory: string;
  readonly references: readonly ImageReference[];
  readonly kept: (key: string) => boolean;
}

/** Every published file of the cache's own directory, once, with what is known of it. */
export async function filesOf(
  records: ReadonlyMap<string, ImageRecord>,
  { directory, references, kept }: Facts,
): Promise<CachedFile[]> {
  const files = new Map<string, CachedFile>();
  for (const record of records.values()) {
    if (dirname(record.path) !== directory) continue; // an owner who chose the place also removes the file
    const there = await stat(record.path).catch(() => undefined);
    if (there === undefined) continue; // the next request for it notices that
    const asked = await stat(recordPath(directory, record.key)).catch(() => undefined);
    const before = files.get(record.path);
    files.set(record.path, {
      path: record.path,
      allocatedBytes: there.blocks * 512,
      usedAtMs: Math.max(asked?.mtimeMs ?? 0, before?.usedAtMs ?? 0),
      guests: references.filter((reference) => liesUpon(reference, record)).length,
      kept: kept(record.key) || (before?.kept ?? false),
    });
  }
  return [...files.values()];
}

/** The disk space of downloads under way and interrupted ones. */
export async function partialBytes(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(directory)) {
    if (!/\.(partial|unpacking)$/.test(entry)) continue;
    bytes += ((await stat(join(directory, entry)).catch(() => undefined))?.blocks ?? 0) * 512;
  }
  return bytes;
}
