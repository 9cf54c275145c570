// Lives of an instance: each placement begins another.

import type { Instance } from '../../api/resources/instance.ts';
import { keys } from './keys.ts';
import type { Snapshot } from './snapshot.ts';

/** Of the life that a placement begins. One that a host was ordered to remove, and may still have, is passed over. */
export function nextIncarnation(snapshot: Snapshot, { metadata, status }: Instance): number {
  let next = status.incarnation + 1;
  while (snapshot.get('allocation', keys.allocation(metadata.id, next))) next += 1;
  return next;
}
