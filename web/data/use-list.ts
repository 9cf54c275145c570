// A live list in a component.

import { useSyncExternalStore } from 'react';
import type { Kind, ResourceByKind } from '../../src/api/resources/index.ts';
import { liveList, type Seen } from './live-list.ts';

export function useList<K extends Kind>(kind: K): Seen<ResourceByKind[K]> & { retry(): void } {
  const list = liveList(kind);
  const seen = useSyncExternalStore(list.follow, list.seen);
  return { ...seen, retry: () => list.retry() };
}
