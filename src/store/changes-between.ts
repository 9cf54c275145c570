// The changes made while a store was read page by page: the pages plus these changes are one state.

import type { Revision, Store, WatchEvent } from './store.ts';

/**
 * Events above `after` up to `through`, in order; fewer when `signal` aborts. Throws `Compacted` when some are gone,
 * and `StoreError`.
 */
export async function* changesBetween(
  store: Store,
  after: Revision,
  through: Revision,
  signal?: AbortSignal,
): AsyncGenerator<readonly WatchEvent[], void> {
  if (through <= after) return;
  const over = new AbortController();
  const either = signal ? AbortSignal.any([over.signal, signal]) : over.signal;
  try {
    for await (const batch of store.watch('', after, either)) {
      const events = batch.filter(({ revision }) => revision <= through);
      if (events.length > 0) yield events;
      if ((batch.at(-1)?.revision ?? 0) >= through) return;
    }
  } finally {
    over.abort();
  }
}
