// Invariant 6 as a control plane sees the store: every event of the history after the revision it began at, once and in order, in whole
// revisions. Lies over a store and lets everything pass.

import type { Store } from '../../store/store.ts';
import type { Commit } from '../history.ts';

export function withWatchCheck(
  store: Store,
  { commits, onFault }: { readonly commits: readonly Commit[]; readonly onFault: (fault: string) => void },
): Store {
  return {
    get: (key) => store.get(key),
    list: (prefix, options) => store.list(prefix, options),
    commit: (conditions, writes) => store.commit(conditions, writes),
    async *watch(prefix, after, signal) {
      let seen = after;
      for await (const batch of store.watch(prefix, after, signal)) {
        const last = batch.at(-1)?.revision ?? seen;
        const fault = batchFault(commits, { prefix, seen, last }, batch);
        if (fault !== undefined) onFault(`a watch of "${prefix}" from ${after}: ${fault}`);
        seen = last;
        yield batch;
      }
    },
    compact: (before) => store.compact(before),
    close: () => store.close(),
  };
}

interface Delivered {
  readonly key: string;
  readonly value: unknown;
  readonly revision: number;
}

/** What is wrong with a batch that brings a watch from `seen` to `last`. */
export function batchFault(
  commits: readonly Commit[],
  { prefix, seen, last }: { readonly prefix: string; readonly seen: number; readonly last: number },
  batch: readonly Delivered[],
): string | undefined {
  let at = 0;
  for (let revision = seen + 1; revision <= last; revision++) {
    for (const { key, after } of commits[revision - 1]?.events ?? []) {
      if (!key.startsWith(prefix)) continue;
      const event = batch[at++];
      if (event?.key !== key || event.revision !== revision || (event.value === null) !== (after === null))
        return `${event ? `${event.key} at ${event.revision}` : 'nothing'} came in the place of ${key} at ${revision}`;
    }
  }
  const more = batch[at];
  return more && `${more.key} at ${more.revision} came once more, or late`;
}
