// Shared by all replaces and deletes: finds the resource and compares it with the revision that the user saw.

import { ApiError } from '../../api/errors.ts';
import type { Metadata } from '../../api/resources/metadata.ts';
import type { RecordByKind } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import type { Kind } from '../../api/resources/index.ts';
import type { CreateInput } from './create.ts';

export interface ReplaceInput<Spec> extends CreateInput<Spec> {
  /** The revision that the user saw; absent: any. */
  readonly ifRevision?: number;
}

export interface DeleteInput {
  readonly project: string;
  readonly name: string;
  /** The revision that the user saw; absent: any. */
  readonly ifRevision?: number;
}

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

/** Metadata after a change by a user; `generation` grows only when the spec changed. */
export function replacedMetadata(
  metadata: Metadata,
  change: { labels: Metadata['labels']; specChanged: boolean },
): Metadata {
  return { ...metadata, labels: change.labels, generation: metadata.generation + (change.specChanged ? 1 : 0) };
}
