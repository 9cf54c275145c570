// The commit status of a job that a webhook asked for: what the forge should show now, and the record of what it has
// accepted. Pure; server/outbox/statuses sends it.

import { isFinal, type Job, type JobStatus } from '../../../api/resources/job.ts';
import { forgeJobsOf } from '../../state/views/forge-jobs.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';

/** GitHub has no state for "running": both stages are pending there, with another description. */
export type CommitStage = 'queued' | 'running' | 'success' | 'failure' | 'error';

export interface CommitStatus {
  readonly stage: CommitStage;
  /** As GitHub and Forgejo name it. */
  readonly state: 'pending' | 'success' | 'failure' | 'error';
  readonly description: string;
  readonly final: boolean;
}

/** GitHub's limit. */
const descriptionLengthMax = 140;

/** Undefined: nothing is to be sent now. */
export function statusToSend(snapshot: Snapshot, { key, value }: Entry<Job>): CommitStatus | undefined {
  const { commitStatus } = value.status;
  if (value.spec.forge === undefined || commitStatus?.final) return undefined;
  // Of several jobs that report to one status only the newest does: the last write wins at the forge.
  if (newestOf(snapshot, value) !== key) return undefined;
  const wanted = statusOf(value);
  return wanted === undefined || wanted.stage === commitStatus?.state ? undefined : wanted;
}

/** Retries of a job report to the status of the first. */
function newestOf(snapshot: Snapshot, { spec: { forge } }: Job): string | undefined {
  if (forge === undefined) return undefined;
  let newest: Entry<Job> | undefined;
  for (const key of forgeJobsOf(snapshot).ofStatus(forge)) {
    const entry = snapshot.get('job', key);
    // Ids grow with time.
    if (entry && (newest === undefined || newest.value.metadata.id < entry.value.metadata.id)) newest = entry;
  }
  return newest?.key;
}

function statusOf({ status }: Job): CommitStatus | undefined {
  // The end of a job that is being cancelled is near.
  if (status.cancel && !isFinal(status.phase)) return undefined;
  switch (status.phase) {
    case 'Queued':
    case 'Placing':
    case 'Booting':
      return statusWith('queued', 'waiting for a virtual machine');
    case 'Running':
    case 'Finishing':
      return statusWith('running', 'running');
    case 'Succeeded':
      return statusWith('success', withTime(status, 'succeeded'));
    case 'TimedOut':
      return statusWith('failure', withTime(status, 'timed out'));
    case 'Cancelled':
      return statusWith('error', `cancelled: ${status.cancel?.message ?? status.message ?? 'on request'}`);
    case 'Failed':
      return status.attempts.at(-1)?.outcome === 'failure'
        ? statusWith('failure', withTime(status, `failed with exit code ${status.exitCode ?? 'unknown'}`))
        : statusWith('error', `could not run: ${status.message ?? status.reason ?? 'unknown'}`);
  }
}

function statusWith(stage: CommitStage, text: string): CommitStatus {
  const description = text.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ');
  const cut =
    description.length <= descriptionLengthMax ? description : `${description.slice(0, descriptionLengthMax - 1)}…`;
  const final = stage !== 'queued' && stage !== 'running';
  return { stage, state: stage === 'queued' || stage === 'running' ? 'pending' : stage, description: cut, final };
}

/** `succeeded after 1 min 5 s`. */
function withTime({ startedAtMs, endedAtMs }: JobStatus, what: string): string {
  if (startedAtMs === undefined || endedAtMs === undefined) return what;
  const seconds = Math.max(0, Math.round((endedAtMs - startedAtMs) / 1000));
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${what} after ${seconds} s` : `${what} after ${minutes} min ${seconds % 60} s`;
}

export interface SentStatus {
  readonly key: string;
  readonly id: string;
  readonly commitStatus: NonNullable<JobStatus['commitStatus']>;
}

/** Repeating it is harmless, and so is a job that is gone. A final status stays. */
export function recordCommitStatus(snapshot: Snapshot, { key, id, commitStatus }: SentStatus): { readonly plan: Plan } {
  const entry = snapshot.get('job', key);
  if (entry?.value.metadata.id !== id || entry.value.status.commitStatus?.final) return { plan: emptyPlan };
  const value: Job = { ...entry.value, status: { ...entry.value.status, commitStatus } };
  return { plan: { changes: [{ key, ifRevision: entry.revision, value }] } };
}
