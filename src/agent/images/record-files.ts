// The keys, names and files of the cache's records.

import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImageSpec } from '../../api/resources/image.ts';
import type { ImageRecord } from './image-record.ts';

export const keyLength = 32;

/**
 * Identifies an image in the cache. Another source or checksum is another image: guests of the old one keep theirs. `project`: it is fetched
 * with a credential of that project, and is for its guests alone.
 */
export function keyOf(image: ImageSpec, project?: string): string {
  const parts = [image.source, image.checksum ?? '', image.decompress, image.format, image.localPath ?? ''];
  if (image.sizeBytes !== undefined) parts.push(String(image.sizeBytes));
  if (image.source.startsWith('oci:')) parts.push(image.architecture); // one name has a different content for each architecture
  if (project !== undefined) parts.push(`project ${project}`);
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, keyLength);
}

export function recordPath(directory: string, key: string): string {
  return join(directory, `${key}.json`);
}

/** Whether the file is as it was when it was published. */
export async function unchanged(record: ImageRecord): Promise<boolean> {
  const there = await stat(record.path).catch(() => undefined);
  return there?.isFile() === true && there.size === record.sizeBytes && there.mtimeMs === record.changedAtMs;
}

/** Gives the name to this record and takes it from every other: a name belongs to its latest image only. Returns the keys of changed records. */
export function giveName(records: Map<string, ImageRecord>, key: string, name: string): string[] {
  const changed: string[] = [];
  for (const record of [...records.values()]) {
    const has = record.names.includes(name);
    if (has === (record.key === key)) continue;
    const names = has ? record.names.filter((one) => one !== name) : [...record.names, name];
    records.set(record.key, { ...record, names });
    changed.push(record.key);
  }
  return changed;
}
