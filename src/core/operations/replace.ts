// What all replaces and deletes share: finding the resource and holding it against the revision that the user saw.

import { isRecord } from '../../base/is-record.ts';
import { ApiError } from '../../api/errors.ts';
import type { Metadata } from '../../api/resources/metadata.ts';
import type { RecordByKind } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import type { Kind } from '../../api/resources/index.ts';

/** The entry at `key`. Throws `NotFound`, or `RevisionMismatch` when `ifRevision` is given and no longer holds. */
export function existing<K extends Kind>(
  snapshot: Snapshot,
  kind: K,
  key: string,
  ifRevision?: number,
): Entry<RecordByKind[K]> {
  const entry = snapshot.get(kind, key);
  if (!entry) throw new ApiError('NotFound', `there is no ${kind} "${key.slice(key.lastIndexOf('/') + 1)}"`);
  if (ifRevision !== undefined && entry.revision !== ifRevision) {
    throw new ApiError(
      'RevisionMismatch',
      `${kind} "${entry.value.metadata.name}" has changed since revision ${ifRevision}; read it again`,
      {
        field: 'metadata.revision',
        details: { revision: Math.max(0, entry.revision) },
      },
    );
  }
  return entry;
}

/** Metadata after a change by a user; `generation` grows only when the spec did change. */
export function replacedMetadata(
  metadata: Metadata,
  change: { labels: Metadata['labels']; specChanged: boolean },
): Metadata {
  return { ...metadata, labels: change.labels, generation: metadata.generation + (change.specChanged ? 1 : 0) };
}

/** Structural equality of JSON data, key order aside. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((each, i) => equalJson(each, b[i]));
  if (!isRecord(a) || !isRecord(b)) return false;
  let more = 0;
  for (const key in b) if (b[key] !== undefined) more += 1;
  for (const key in a) {
    if (a[key] === undefined) continue;
    if (!Object.hasOwn(b, key) || !equalJson(a[key], b[key])) return false;
    more -= 1;
  }
  return more === 0;
}
