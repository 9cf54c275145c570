// Which credentials of a host's name are valid: the generation of the name grows when a host that was removed is created again, and
// never falls.

import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';

/** 0: no host of this name was ever created again. */
export function hostGenerationOf(snapshot: Pick<Snapshot, 'get'>, host: string): number {
  return snapshot.get('hostGeneration', keys.hostGeneration(host))?.value.generation ?? 0;
}

/** For a new token: while a host is removed, that of the host to come. */
export function comingHostGeneration(snapshot: Pick<Snapshot, 'get'>, host: string): number {
  const present = hostGenerationOf(snapshot, host);
  return snapshot.get('removedHost', keys.removedHost(host)) === undefined ? present : present + 1;
}

/** For a host that is created after one of its name was removed: the credentials of that one stay invalid. */
export function nextHostGeneration(snapshot: Snapshot, host: string): Change {
  const key = keys.hostGeneration(host);
  const entry = snapshot.get('hostGeneration', key);
  const generation = (entry?.value.generation ?? 0) + 1;
  return { key, ifRevision: entry?.revision ?? 0, value: { kind: 'hostGeneration', host, generation } };
}
