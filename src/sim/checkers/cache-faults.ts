// What is wrong with what a control plane believes, held against the history: of one key as it hears of it, or of everything. A cache
// that fell behind, or revived something, shows it to users for ever and writes nothing that any other checker could see.

import type { Cache } from '../../core/state/cache.ts';
import { kindOfKey } from '../../core/state/keys.ts';
import type { RecordKind } from '../../core/state/records.ts';
import type { CommittedState, Written } from '../history.ts';

const kinds: readonly RecordKind[] = [
  'instance',
  'host',
  'provider',
  'allocation',
  'image',
  'task',
  'project',
  'idempotency',
  'event',
];

/** At rest: everything is as it is stored, and no commit of its own is waited for. Leases are left out: they change even at rest. */
export function* cacheFaults(state: CommittedState, cache: Cache, name: string): Iterable<string> {
  const stored = new Map<string, number>();
  for (const { key, revision } of state.entries()) {
    const kind = kindOfKey(key);
    if (kind === undefined || kind === 'lease' || kind === 'leaderLease') continue;
    stored.set(key, revision);
    const known = cache.committed(kind, key)?.revision;
    if (known !== revision) yield `${name} knows ${key} at ${known ?? 'no revision'}; it is at ${revision}`;
    if (cache.isAssumed(key)) yield `${name} still waits for a commit of ${key}`;
  }
  for (const kind of kinds)
    for (const { key, revision } of cache.listCommitted(kind))
      if (!stored.has(key)) yield `${name} knows ${key} at ${revision}; it is not there`;
}

/**
 * At any time: a cache holds a key as it was at the cache's revision, or as a later commit made it that it knows of already, for it was
 * its own. `writes` are those of the key, the oldest first.
 */
export function cachedKeyFault(writes: readonly Written[], cache: Cache, key: string): string | undefined {
  const kind = kindOfKey(key);
  if (kind === undefined) return undefined;
  const known = cache.committed(kind, key)?.revision;
  const last = writes.findLast(({ revision }) => revision <= cache.revision);
  if (known === undefined) {
    if (last === undefined || last.deleted) return undefined;
    const deletedLater = writes.some(({ revision, deleted }) => deleted && revision > cache.revision);
    return deletedLater ? undefined : `${key} is unknown at ${cache.revision}; it was written at ${last.revision}`;
  }
  const written = writes.find(({ revision }) => revision === known);
  if (written === undefined || written.deleted)
    return `${key} is known at ${known}, where it was ${written ? 'deleted' : 'not written'}`;
  if (last !== undefined && known < last.revision)
    return `${key} is known at ${known}; at ${cache.revision} it was ${last.deleted ? 'deleted' : 'written'} at ${last.revision}`;
  return undefined;
}

/** Of everything that is or was. */
export function* cachedFaults(state: CommittedState, cache: Cache): Iterable<string> {
  for (const [key, writes] of state.allWritten()) {
    const fault = cachedKeyFault(writes, cache, key);
    if (fault !== undefined) yield fault;
  }
}
