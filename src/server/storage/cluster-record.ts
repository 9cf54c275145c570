// The store's own record, read from the store itself: for work on a store that no control plane of this process follows.

import { decodeRecord } from '../../core/state/codec.ts';
import { keys } from '../../core/state/keys.ts';
import type { Cluster } from '../../core/state/records.ts';
import type { Revision, Store } from '../../store/store.ts';

/** Undefined: no server has used the store yet. */
export async function clusterIn(
  store: Store,
): Promise<{ readonly revision: Revision; readonly cluster: Cluster } | undefined> {
  const entry = await store.get(keys.cluster);
  const cluster = clusterOf(entry?.value);
  return entry && cluster ? { revision: entry.revision, cluster } : undefined;
}

export function clusterOf(value: Uint8Array | undefined): Cluster | undefined {
  const record = value && decodeRecord(keys.cluster, value);
  return record?.kind === 'cluster' ? record : undefined;
}

/** The server that leads the store, or led it last and did not let go. */
export async function leaderIn(store: Store): Promise<string | undefined> {
  const entry = await store.get(keys.leader);
  const record = entry && decodeRecord(keys.leader, entry.value);
  return record?.kind === 'leader' && record.holder !== '' ? record.holder : undefined;
}
