// The whole content of a store, or of some prefixes, a page at a time.

import type { Listed, Store } from './store.ts';

/** About 3 MB; four pages are in memory at a time: one in use, three being read. */
const pageEntries = 2_000;
/** More would only use more memory. */
const readAtOnce = 3;

export interface PagesOptions {
  /** Three are read at a time, started in this order; default: everything as one prefix. */
  readonly prefixes?: readonly string[];
  readonly limit?: number;
}

/**
 * Sorted by key within a prefix, each page at its own revision; the last may be empty. The store reads the next pages,
 * of up to three prefixes, while one is used, so that reading and using overlap. Throws `StoreError`.
 */
export async function* pagesOf(
  store: Store,
  { prefixes = [''], limit = store.pageEntries ?? pageEntries }: PagesOptions = {},
): AsyncGenerator<Listed, void> {
  const waiting = [...prefixes];
  const underWay = new Map<string, Promise<{ readonly prefix: string; readonly page: Listed }>>();
  const read = (prefix: string, after?: string): void => {
    const reading = store
      .list(prefix, { limit, ...(after === undefined ? {} : { after }) })
      .then((page) => ({ prefix, page }));
    reading.catch(() => {}); // reported when it is awaited
    underWay.set(prefix, reading);
  };
  for (const prefix of waiting.splice(0, readAtOnce)) read(prefix);
  while (underWay.size > 0) {
    const { prefix, page } = await Promise.race(underWay.values());
    underWay.delete(prefix);
    const last = page.entries.length === limit ? page.entries.at(-1)?.key : undefined;
    const next = last === undefined ? waiting.shift() : prefix;
    if (next !== undefined) read(next, last);
    yield page;
  }
}
