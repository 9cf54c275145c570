// What an earlier run of the agent left in the cache's directory: complete images are kept, partial downloads for a day, and
// the rest is removed, except images that a guest may use.

import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImageCacheOptions } from './image-cache-options.ts';
import { type ImageRecord, readRecord } from './image-record.ts';
import type { FoundReferences } from './image-references.ts';
import { findReferences } from './images-in-use.ts';
import { keyLength, unchanged } from './record-files.ts';

/** How long an interrupted download can be resumed. */
const partialAgeMsMax = 24 * 60 * 60 * 1000;

/** Files that the cache makes, by their endings. Earlier versions named images by their key. */
const leftover =
  /^(?:[0-9a-f]{32}|sha256-[0-9a-f]{64})\.(img|unpacking|img\.unpacking|img\.link|partial|source\.json|json\.new|source\.json\.new)$/;

/** Reads the records of complete images and removes the other files, except images that a guest may use. */
export async function loadRecords(options: ImageCacheOptions, records: Map<string, ImageRecord>): Promise<void> {
  const { directory, clock, log } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const entries = await readdir(directory);
  for (const entry of entries.filter((one) => /^[0-9a-f]{32}\.json$/.test(one))) {
    const record = readRecord(await readFile(join(directory, entry), 'utf8'));
    if (record !== undefined && entry === `${record.key}.json` && (await unchanged(record)))
      records.set(record.key, record);
    else await rm(join(directory, entry), { force: true });
  }
  const whole = new Set([...records.values()].map((record) => record.path));
  let found: FoundReferences | undefined;
  for (const entry of entries) {
    const path = join(directory, entry);
    const kind = leftover.exec(entry)?.[1];
    if (kind === undefined || whole.has(path)) continue;
    // The download of an image that is complete is not resumed.
    const resumable = (kind === 'partial' || kind === 'source.json') && !records.has(entry.slice(0, keyLength));
    if (resumable && clock.nowMs() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? 0) < partialAgeMsMax)
      continue;
    if (kind === 'img') {
      found ??= await findReferences(options);
      const digest = entry.replace(/^sha256-([0-9a-f]{64})\.img$/, 'sha256:$1');
      if (!found.complete || found.references.some((one) => one.paths.includes(path) || one.digest === digest)) {
        log.warn('an image of the cache has lost its record; it stays, for a guest may need it', { path });
        continue;
      }
    }
    log.info('removing what an earlier run left half-done', { path });
    await rm(path, { force: true });
  }
}
