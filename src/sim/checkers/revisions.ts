// Invariant 6: revisions have no gaps, an entry bears the revision of its commit, and what a control plane believes is what was stored
// at its revision. What watches deliver is held to the same history by watch.ts, store-watch.ts and assignment-watch.ts.

import { cachedFaults, cachedKeyFault, cacheFaults } from './cache-faults.ts';
import type { Checker, Facts } from './checker.ts';

export function revisionsChecker({ state, servers }: Facts): Checker {
  let revision = 0;
  return {
    invariant: 6,
    overRestore: 'throughout',
    onCommit(commit) {
      if (commit.revision !== revision + 1) return `revision ${commit.revision} followed ${revision}`;
      revision = commit.revision;
      for (const { key, after } of commit.events)
        if (state.written(key).at(-1)?.revision !== revision || (after === null) !== state.written(key).at(-1)?.deleted)
          return `${key} does not bear revision ${revision}`;
      return undefined;
    },
    onCached({ server, cache, key }) {
      if (cache.revision > revision) return `${server} is at ${cache.revision}; the store is at ${revision}`;
      const fault = cachedKeyFault(state.written(key), cache, key);
      return fault && `of what ${server} believes, ${fault}`;
    },
    recount() {
      for (const { name, cache } of servers()) {
        const [fault] = cachedFaults(state, cache);
        if (fault !== undefined) return `${name} never said that ${fault}`;
      }
      return undefined;
    },
    *unrest() {
      for (const { name, cache } of servers()) yield* cacheFaults(state, cache, name);
    },
  };
}
