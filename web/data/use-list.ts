// What pages follow, in a component.

import { useMemo, useSyncExternalStore } from 'react';
import type { Kind, ResourceByKind } from '../../src/api/resources/index.ts';
import { liveList, type Seen } from './live-list.ts';
import { LiveOne, type Named, type SeenOne } from './live-one.ts';
import { RowWindow, type Rows } from './row-window.ts';

/** All of a kind, for an order that only the whole has. */
export function useList<K extends Kind>(kind: K): Seen<ResourceByKind[K]> & { retry(): void } {
  const list = liveList(kind);
  const seen = useSyncExternalStore(list.followed.follow, list.seen);
  return { ...seen, retry: list.followed.retry };
}

/** One resource, by name or id. */
export function useOne<K extends Kind>(
  kind: K,
  { name, project }: Named,
): SeenOne<ResourceByKind[K]> & { retry(): void } {
  const one = useMemo(() => new LiveOne(kind, { name, project }), [kind, name, project]);
  const seen = useSyncExternalStore(one.followed.follow, one.seen);
  return { ...seen, retry: one.followed.retry };
}

/** The newest first; of any number. `words`: the filter of src/api/lists/words.ts. */
export function useRows<K extends Kind>(kind: K, words: string): Rows<ResourceByKind[K]> & { retry(): void } {
  const rows = useMemo(() => new RowWindow(kind, words), [kind, words]);
  const seen = useSyncExternalStore(rows.followed.follow, rows.seen);
  return { ...seen, retry: rows.followed.retry };
}
