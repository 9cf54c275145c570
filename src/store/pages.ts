// All that is in a store, or under some prefixes, a page at a time.

import type { Listed, Store } from './store.ts';

/** Some 3 MB; while a store is read four times that is held: one page is used while three are made. */
const pageEntries = 2_000;
/** More would only hold more. */
const readAtOnce = 3;

export interface PagesOptions {
  /** Read three at a time, begun in this order; default: all that is there, as one. */
  readonly prefixes?: readonly string[];
  readonly limit?: number;
}

/**
 * In the order of keys within a prefix, each page at its own revision; the last may be empty. The store reads the next pages while one is
 * used: of three prefixes, so that what is slow to make and what is slow to use are waited for at once. Throws `StoreError`.
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
    reading.catch(() => {}); // told when it is awaited
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
