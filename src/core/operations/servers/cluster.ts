// The record that a new store gets: its epoch and the secrets that all its control planes share.

import { ApiError } from '../../../api/errors.ts';
import { isMarked, newerStore } from '../../state/cluster-state.ts';
import { recordsVersion } from '../../state/upgrade.ts';
import type { Context } from '../../state/context.ts';
import { endAnyLeadership } from './leadership.ts';
import { keys } from '../../state/keys.ts';
import { type Change, type Plan, unchanged } from '../../state/plan.ts';
import type { Cluster } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';

type ClusterSecrets = Pick<Cluster, 'tokenSecret' | 'operatorToken' | 'operatorDigest'>;

export interface OpeningSecrets extends ClusterSecrets {
  /** SHA-256, hexadecimal; absent: the text of an admin token stays in the store. */
  readonly digestOf?: ((text: string) => string) | undefined;
}

/**
 * The secrets are used only when the store has none yet. Called at every start. Throws `Unavailable` for a store that is
 * closed, or used by a newer Berth.
 */
export function openCluster(
  snapshot: Snapshot,
  { digestOf, ...secrets }: OpeningSecrets,
  ctx: Context,
): { readonly plan: Plan; readonly cluster: Cluster } {
  const entry = snapshot.get('cluster', keys.cluster);
  if (entry) {
    if (entry.value.recordsVersion > recordsVersion) throw new ApiError('Unavailable', newerStore(entry.value));
    if (entry.value.closed) throw new ApiError('Unavailable', `the store is closed: ${entry.value.closed.why}`);
    const kept = withoutText(entry.value, digestOf);
    if (isMarked(kept) && kept === entry.value) return { plan: unchanged(entry), cluster: entry.value };
    // Every commit has this record as a condition: servers that do not know the new form cannot write from now on.
    const cluster = { ...kept, recordsVersion };
    const mark: Change = { key: entry.key, ifRevision: entry.revision, value: cluster };
    // Neither can one of them that leads: its term ends with the mark, so that no other server waits for its lease to expire.
    const ended = isMarked(kept) ? [] : endAnyLeadership(snapshot).plan.changes;
    return { plan: { changes: [mark, ...ended] }, cluster };
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

/** Earlier versions stored the text of the admin token. */
function withoutText(cluster: Cluster, digestOf: ((text: string) => string) | undefined): Cluster {
  const { operatorToken: text, ...rest } = cluster;
  return text === undefined || digestOf === undefined ? cluster : { operatorDigest: digestOf(text), ...rest };
}

/** The admin token with this digest is the only one from this commit on. */
export function replaceOperator(
  snapshot: Snapshot,
  operatorDigest: string,
  ctx: Pick<Context, 'nowMs'>,
): { readonly plan: Plan } {
  const entry = snapshot.get('cluster', keys.cluster);
  if (!entry) throw new ApiError('Unavailable', 'the store has no server yet; start one first');
  if (entry.value.operatorDigest === operatorDigest) return { plan: unchanged(entry) };
  const { operatorToken: _text, ...rest } = entry.value;
  const value = { ...rest, operatorDigest, operatorRotatedAtMs: ctx.nowMs };
  return { plan: { changes: [{ key: entry.key, ifRevision: entry.revision, value }] } };
}
