// Whether this control plane may write to its store and act on it, according to the store's own record.

import { keys } from './keys.ts';
import type { Plan } from './plan.ts';
import type { Cluster } from './records.ts';
import type { Entry, Snapshot } from './snapshot.ts';
import { recordsVersion } from './upgrade.ts';

interface Committed {
  committed(kind: 'cluster', key: string): Entry<Cluster> | undefined;
}

/** Revisions of different epochs cannot be compared. */
export function epochOf(cache: Committed): string | undefined {
  return cache.committed('cluster', keys.cluster)?.value.epoch;
}

/** The last restore of the store, if there was one. */
export function restoreOf(snapshot: Snapshot): Cluster['restored'] {
  return snapshot.get('cluster', keys.cluster)?.value.restored;
}

/** Why writing is forbidden now; undefined when it is allowed. */
export function whyClosed(cache: Committed): string | undefined {
  const cluster = cache.committed('cluster', keys.cluster)?.value;
  if (!cluster) return undefined;
  if (cluster.recordsVersion > recordsVersion) return newerStore(cluster);
  return cluster.closed?.why ?? (isMarked(cluster) ? undefined : unmarkedStore);
}

/** Why `plan` may not be committed now. The Plan that marks the store is the first that may. */
export function whyRefused({ changes }: Plan, cache: Committed): string | undefined {
  if (changes.length === 0) return undefined;
  const why = whyClosed(cache);
  return why === unmarkedStore && changes.some(({ value }) => value?.kind === 'cluster' && isMarked(value))
    ? undefined
    : why;
}

/** Whether servers that do not know the form of this program's records write nothing to the store. */
export function isMarked(cluster: Cluster): boolean {
  return cluster.recordsVersion >= recordsVersion;
}

const unmarkedStore = 'this server is starting, and has not marked the store for its form of records yet';

export function newerStore(cluster: Cluster): string {
  return `a newer Berth uses this store (its records are of version ${cluster.recordsVersion}, this one knows ${recordsVersion}): start the newer version`;
}
