// What a store is told of itself when it is new: its epoch and the secrets that all its control planes share.

import { schemaVersion } from '../state/codec.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import { type Plan, unchanged } from '../state/plan.ts';
import type { Cluster } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';

export type ClusterSecrets = Pick<Cluster, 'tokenSecret' | 'operatorToken'>;

/** `secrets` are taken only by a store that has none yet. Said at every start. */
export function openCluster(
  snapshot: Snapshot,
  secrets: ClusterSecrets,
  ctx: Context,
): { readonly plan: Plan; readonly cluster: Cluster } {
  const entry = snapshot.get('cluster', keys.cluster);
  if (entry) return { plan: unchanged(entry), cluster: entry.value };
  const cluster: Cluster = {
    kind: 'cluster',
    schemaVersion,
    epoch: ctx.newId('epoch'),
    createdAtMs: ctx.nowMs,
    ...secrets,
  };
  return { plan: { changes: [{ key: keys.cluster, ifRevision: 0, value: cluster }] }, cluster };
}
