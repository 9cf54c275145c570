// Incarnations of an instance: each placement starts another.

import type { Instance } from '../../api/resources/instance.ts';
import { keys } from './keys.ts';
import type { Snapshot } from './snapshot.ts';

/** The incarnation that a placement starts. It skips one that a host was ordered to delete and may still have. */
export function nextIncarnation(snapshot: Snapshot, { metadata, status }: Instance): number {
  let next = status.incarnation + 1;
  while (snapshot.get('allocation', keys.allocation(metadata.id, next))) next += 1;
  return next;
}
