// Incarnations of an instance: each placement starts another.

import type { Instance } from '../../api/resources/instance.ts';
import { keys } from './keys.ts';
import type { Snapshot } from './snapshot.ts';

/** The incarnation that a placement starts. It skips those that a host was ordered to delete and may still have, and those of failed moves. */
export function nextIncarnation(snapshot: Snapshot, { metadata, status }: Instance): number {
  let next = Math.max(status.incarnation, status.migration?.incarnation ?? 0) + 1;
  while (snapshot.get('allocation', keys.allocation(metadata.id, next))) next += 1;
  return next;
}
