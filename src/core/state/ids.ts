// Where resources with an id are, for kinds of which there may be many. Indexed from the first question on.

import { defineView, type RecordChange, type Snapshot, type View } from './snapshot.ts';

const indexed = ['task', 'job', 'spare'] as const;
export type IndexedKind = (typeof indexed)[number];

export function isIndexed(kind: string): kind is IndexedKind {
  return indexed.some((each) => each === kind);
}

/** The key of the resource with this id. */
export function keyOfId(snapshot: Snapshot, kind: IndexedKind, id: string): string | undefined {
  return idsOf(snapshot)[kind].get(id);
}

const idsOf = defineView((snapshot) => new Ids(snapshot));

class Ids implements View, Record<IndexedKind, ReadonlyMap<string, string>> {
  readonly task = new Map<string, string>();
  readonly job = new Map<string, string>();
  readonly spare = new Map<string, string>();

  constructor(snapshot: Snapshot) {
    for (const kind of indexed)
      for (const { key, value } of snapshot.list(kind)) this[kind].set(value.metadata.id, key);
  }

  apply({ key, before, after }: RecordChange): void {
    if (before && isIndexed(before.kind) && 'metadata' in before) this[before.kind].delete(before.metadata.id);
    if (after && isIndexed(after.kind) && 'metadata' in after) this[after.kind].set(after.metadata.id, key);
  }
}
