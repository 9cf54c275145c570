// A stored resource as users see it: with the revision of the commit that last wrote it.

import { isRecord } from '../../../base/is-record.ts';
import type { AnyResource } from '../../../api/resources/index.ts';
import { jobOutlooks } from '../../../core/operations/jobs/outlook.ts';
import { contextOf, type Decider } from '../../decide.ts';

export function present(entry: { readonly value: AnyResource; readonly revision: number }): AnyResource {
  const { value, revision } = entry;
  return { ...value, metadata: { ...value.metadata, revision } };
}

/**
 * Adds what is computed when it is read, for several resources of one answer: the place of a job in the queue, and when it may start.
 */
export function withOutlook(decider: Decider): (resource: AnyResource) => AnyResource {
  const outlookOf = jobOutlooks(decider.cache, contextOf(decider));
  return (resource) =>
    resource.kind === 'job' ? { ...resource, status: { ...resource.status, ...outlookOf(resource) } } : resource;
}

export function isResource(value: unknown): value is AnyResource {
  return isRecord(value) && 'metadata' in value;
}
