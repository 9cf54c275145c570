// Invariant 6, its other half: at rest every control plane believes exactly what is stored, and waits for no commit of its own. A cache
// that fell behind, or revived something, shows it to users for ever and writes nothing that any other checker could see.

import type { Cache } from '../../core/state/cache.ts';
import { kindOfKey } from '../../core/state/keys.ts';
import type { RecordKind } from '../../core/state/records.ts';
import type { CommittedState } from '../history.ts';

const kinds: readonly RecordKind[] = ['instance', 'host', 'provider', 'allocation', 'image', 'idempotency', 'event'];

/** Leases are left out: they change even at rest. */
export function* cacheFaults(state: CommittedState, cache: Cache, name: string): Iterable<string> {
  const stored = new Map<string, number>();
  for (const { key, revision } of state.entries()) {
    const kind = kindOfKey(key);
    if (kind === undefined || kind === 'lease') continue;
    stored.set(key, revision);
    const known = cache.committed(kind, key)?.revision;
    if (known !== revision) yield `${name} knows ${key} at ${known ?? 'no revision'}; it is at ${revision}`;
    if (cache.isAssumed(key)) yield `${name} still waits for a commit of ${key}`;
  }
  for (const kind of kinds)
    for (const { key, revision } of cache.listCommitted(kind))
      if (!stored.has(key)) yield `${name} knows ${key} at ${revision}; it is not there`;
}
