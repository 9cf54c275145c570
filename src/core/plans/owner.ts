// Who replaces or ends an instance: a workload, a job, a time limit of its own. The only place that knows.

import { expiryOf } from '../../api/instances/lifetime.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { keys } from '../state/keys.ts';
import { jobsOf } from '../state/jobs.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** The workload that replaces it; undefined: none. */
export function workloadOf(
  snapshot: Snapshot,
  { metadata, status }: Instance,
): { readonly name: string; readonly perHost: boolean; readonly paused: boolean } | undefined {
  if (status.workload === undefined) return undefined;
  const { name, id } = status.workload;
  const workload = snapshot.get('workload', keys.workload(metadata.project, name))?.value;
  if (workload?.metadata.id !== id || workload.metadata.deletionRequestedAtMs !== undefined) return undefined;
  return { name, perHost: workload.spec.perHost === true, paused: workload.spec.paused };
}

/** The name of the warm pool that prepares another in its place; undefined: none, or it is claimed. */
export function warmPoolOf(snapshot: Snapshot, { metadata, status }: Instance): string | undefined {
  if (status.warmPool === undefined) return undefined;
  const { name, id } = status.warmPool;
  const pool = snapshot.get('warmPool', keys.warmPool(metadata.project, name))?.value;
  return pool?.metadata.id === id ? name : undefined;
}

export interface End {
  readonly code: 'JobAttempt' | 'Expires' | 'Deleting';
  readonly message: string;
  readonly atMs?: number;
}

/** Why it ends by itself; undefined: it runs until someone ends it. */
export function endOf(snapshot: Snapshot, { metadata, spec, status }: Instance): End | undefined {
  if (metadata.deletionRequestedAtMs !== undefined) return { code: 'Deleting', message: 'it is being deleted' };
  const jobKey = jobsOf(snapshot).ofInstance(keys.instance(metadata.project, metadata.name));
  const job = jobKey === undefined ? undefined : snapshot.get('job', jobKey)?.value;
  if (job) {
    const atMs = (status.runningAtMs ?? metadata.createdAtMs) + job.spec.timeoutMs;
    return { code: 'JobAttempt', message: `it ends with job ${job.metadata.name}`, atMs };
  }
  const atMs = expiryOf({ metadata, spec });
  return atMs === undefined ? undefined : { code: 'Expires', message: 'its lifetime ends', atMs };
}
