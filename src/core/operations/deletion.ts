// Deletion in two steps: the request is recorded on the resource, and the record goes when nothing of the resource is
// left (controllers/). Between the two, the resource cannot be changed.

import { ApiError } from '../../api/errors.ts';
import type { AnyResource } from '../../api/resources/index.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import type { Decision } from './decision.ts';

export function isDeleting({ metadata }: AnyResource): boolean {
  return metadata.deletionRequestedAtMs !== undefined;
}

/** Throws `Conflict`. `word`: what users call its kind. */
export function assertNotDeleting(resource: AnyResource, word: string): void {
  if (isDeleting(resource))
    throw new ApiError('Conflict', `${word} "${resource.metadata.name}" is being deleted and cannot be changed`);
}

/** `entry.value` is the resource with the status that it has while it is deleted. */
export function requestDeletion(
  entry: { readonly key: string; readonly revision: number; readonly value: AnyResource },
  message: string,
  ctx: Context,
): Decision {
  const { key, revision, value } = entry;
  const deleting = { ...value, metadata: { ...value.metadata, deletionRequestedAtMs: ctx.nowMs } };
  return {
    plan: {
      changes: [
        { key, ifRevision: revision, value: deleting },
        eventChange(deleting, { reason: 'DeletionRequested', message }, ctx),
      ],
    },
    key,
    changed: true,
  };
}
