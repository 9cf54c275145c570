// All that is in a store, a page at a time.

import type { Store } from './store.ts';

export type Page = Awaited<ReturnType<Store['list']>>;

/** Some 3 MB: twice that is held while a store is read. */
const pageEntries = 2_000;

/**
 * In the order of keys, each page at its own revision; the last may be empty. The store reads the next page while one is used.
 * Throws `StoreError`.
 */
export async function* pagesOf(store: Store, limit = store.pageEntries ?? pageEntries): AsyncGenerator<Page, void> {
  let next: Promise<Page> | undefined = store.list('', { limit });
  while (next) {
    const page: Page = await next;
    const last = page.entries.length === limit ? page.entries.at(-1)?.key : undefined;
    next = last === undefined ? undefined : store.list('', { limit, after: last });
    next?.catch(() => {}); // told when it is awaited
    yield page;
  }
}
