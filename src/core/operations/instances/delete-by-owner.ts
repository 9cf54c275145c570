// A request for the deletion of an instance, unlike the end of its time or of its job.

import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import type { Decision } from '../decision.ts';
import { deleteInstance } from '../instance.ts';
import { assertDeletable } from './lifetime.ts';

/** Throws `Conflict` while it is protected. */
export function deleteByOwner(snapshot: Snapshot, input: Parameters<typeof deleteInstance>[1], ctx: Context): Decision {
  const instance = snapshot.get('instance', keys.instance(input.project, input.name));
  if (instance) assertDeletable(instance.value);
  return deleteInstance(snapshot, input, ctx);
}
