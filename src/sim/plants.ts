// Planted bugs: what a simulator that works must find. They lie between a control plane and the store, so production code holds no hook
// for them.

import type { Store } from '../store/store.ts';

export const plants: Readonly<
  Record<string, { readonly invariant: number; readonly meddle: (store: Store) => Store }>
> = {
  /** Two claims decided on the same view are both committed. */
  'drop-ledger-condition': {
    invariant: 1,
    meddle: (store) => ({
      get: (key) => store.get(key),
      list: (prefix, options) => store.list(prefix, options),
      commit: (conditions, writes) =>
        store.commit(
          conditions.filter(({ key }) => !key.startsWith('providers/')),
          writes,
        ),
      watch: (prefix, after, signal) => store.watch(prefix, after, signal),
      compact: (before) => store.compact(before),
      close: () => store.close(),
    }),
  },
};
