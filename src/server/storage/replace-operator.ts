// Replaces the admin token in a store itself, while no server of this process follows it. Servers that run on it hear of it as of any
// other change.

import { encodeRecord } from '../../core/state/codec.ts';
import { keys } from '../../core/state/keys.ts';
import type { Cluster } from '../../core/state/records.ts';
import { recordsVersion } from '../../core/state/upgrade.ts';
import { type Store, StoreError } from '../../store/store.ts';
import { clusterIn } from './cluster-record.ts';

const triesMax = 5;

/** Throws `StoreError`. Secrets of the record stay as they stand in the store, encrypted or not. */
export async function replaceOperatorIn(store: Store, operatorDigest: string, nowMs: number): Promise<void> {
  for (let tries = 0; tries < triesMax; tries++) {
    const present = await clusterIn(store);
    if (!present) throw new StoreError('Invalid', 'no server has used this store yet');
    const { operatorToken: _text, ...rest } = present.cluster;
    if (rest.recordsVersion > recordsVersion)
      throw new StoreError('Invalid', 'a newer Berth uses this store: use its "berth token rotate-admin"');
    const cluster: Cluster = { ...rest, operatorDigest, operatorRotatedAtMs: Math.floor(nowMs) };
    const done = await store.commit(
      [{ key: keys.cluster, ifRevision: present.revision }],
      [{ key: keys.cluster, value: encodeRecord(cluster) }],
    );
    if (done.ok) return;
  }
  throw new StoreError('Unavailable', 'others kept changing the record of the store; try again');
}
