// The one true store of a run, with every commit recorded in the history and checked before the caller gets its result.

import { keys } from '../../core/state/keys.ts';
import type { Store } from '../../store/store.ts';
import type { Tally } from '../batch/tally.ts';
import type { Commit, History } from '../history.ts';
import type { Trace } from './trace.ts';

export interface RecordedStoreOptions {
  readonly base: Store;
  readonly history: History;
  readonly tally: Tally;
  readonly trace: Trace;
  readonly onCommit: (commit: Commit) => void;
}

export function recordedStore({ base, history, tally, trace, onCommit }: RecordedStoreOptions): Store {
  return {
    get: (key) => base.get(key),
    list: (prefix, options) => base.list(prefix, options),
    watch: (prefix, after, signal) => base.watch(prefix, after, signal),
    compact: (before) => base.compact(before),
    close: () => base.close(),
    async commit(conditions, writes) {
      const result = await base.commit(conditions, writes);
      const commit = history.record(result, writes);
      if (!result.ok && result.key === keys.leader) tally.hit('stale-leader-refused');
      if (!result.ok) trace.line(() => `refused: ${result.key} is not as ${writes[0]?.key ?? 'a read'} wanted it`);
      if (commit !== undefined) onCommit(commit);
      return result;
    },
  };
}
