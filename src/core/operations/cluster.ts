// The record that a new store gets: its epoch and the secrets that all its control planes share.

import { ApiError } from '../../api/errors.ts';
import { newerStore } from '../state/cluster-state.ts';
import { recordsVersion } from '../state/upgrade.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import { type Plan, unchanged } from '../state/plan.ts';
import type { Cluster } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';

export type ClusterSecrets = Pick<Cluster, 'tokenSecret' | 'operatorToken'>;

/**
 * `secrets` are used only when the store has none yet. Called at every start. Throws `Unavailable` for a store that is
 * closed, or used by a newer Berth.
 */
export function openCluster(
  snapshot: Snapshot,
  secrets: ClusterSecrets,
  ctx: Context,
): { readonly plan: Plan; readonly cluster: Cluster } {
  const entry = snapshot.get('cluster', keys.cluster);
  if (entry) {
    if (entry.value.recordsVersion > recordsVersion) throw new ApiError('Unavailable', newerStore(entry.value));
    if (entry.value.closed) throw new ApiError('Unavailable', `the store is closed: ${entry.value.closed.why}`);
    if (entry.value.recordsVersion === recordsVersion) return { plan: unchanged(entry), cluster: entry.value };
    // Every commit has this record as a condition: servers that do not know the new form cannot write from now on.
    const cluster = { ...entry.value, recordsVersion };
    return { plan: { changes: [{ key: entry.key, ifRevision: entry.revision, value: cluster }] }, cluster };
  }
  const cluster: Cluster = {
    kind: 'cluster',
    recordsVersion,
    epoch: ctx.newId('epoch'),
    createdAtMs: ctx.nowMs,
    ...secrets,
  };
  return { plan: { changes: [{ key: keys.cluster, ifRevision: 0, value: cluster }] }, cluster };
}
