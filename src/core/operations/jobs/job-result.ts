// JobResult: what the publisher of a JobRequest gets back. Its bytes are made once, in the Plan of the job's final phase,
// and never again: a result that is sent twice is the same twice. Pure.

import {
  isFinal,
  type Job,
  type JobPhase,
  type JobRequestOrigin,
  type JobResultDelivery,
} from '../../../api/resources/job.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import { emptyPlan, type Plan, unchanged } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';

/** The schema of a result, and the routing key that it is published with. */
export const jobResultVersion = 'jobresult.v1';

const statusByPhase: Readonly<Partial<Record<JobPhase, string>>> = {
  Succeeded: 'succeeded',
  Failed: 'failed',
  Cancelled: 'cancelled',
  TimedOut: 'timed_out',
};

/** `error` is cut to this; the job's record has the rest. */
const errorCharactersMax = 1_024;

/**
 * `status.result` of a job whose status is the final one that the Plan writes; undefined: no message asked for it, or it
 * has not ended. It replaces no result that is there already.
 */
export function jobResult(job: Job, ctx: Pick<Context, 'nowMs' | 'policy'>): JobResultDelivery | undefined {
  const { spec, status, metadata } = job;
  if (status.result) return status.result;
  if (spec.request === undefined || !isFinal(status.phase)) return undefined;
  return {
    messageId: `jobresult.${metadata.id}`,
    body: resultOf(job, spec.request, ctx),
    exchange: 'waiting',
    ...(spec.request.replyTo === undefined ? {} : { reply: 'waiting' }),
  };
}

function resultOf(
  { metadata, spec, status }: Job,
  request: JobRequestOrigin,
  { nowMs, policy }: Pick<Context, 'nowMs' | 'policy'>,
): string {
  const success = status.phase === 'Succeeded';
  const why = [status.reason, status.message].filter((part) => part !== undefined && part !== '').join(': ');
  const path = `/v1/jobs/${metadata.name}/log?project=${metadata.project}`;
  return JSON.stringify({
    schema_version: jobResultVersion,
    request_id: request.requestId,
    job_id: metadata.id,
    repo_url: spec.repo?.url ?? null,
    commit_sha: spec.repo?.commit ?? null,
    success,
    status: statusByPhase[status.phase] ?? 'failed',
    exit_code: status.exitCode ?? null,
    summary: summaryOf(status.attempt, status.exitCode),
    ...(success ? {} : { error: (why === '' ? status.phase : why).slice(0, errorCharactersMax) }),
    submitted_at: request.submittedAt,
    started_at: status.startedAtMs === undefined ? null : timeOf(status.startedAtMs),
    completed_at: timeOf(status.endedAtMs ?? nowMs),
    // Without a URL that others can reach it is the path at the server.
    log_url: `${policy.publicUrl ?? ''}${path}`,
  });
}

function summaryOf(attempt: number, exitCode: number | undefined): string {
  const attempts = attempt === 1 ? '1 attempt' : `${attempt} attempts`;
  return exitCode === undefined ? attempts : `exit code ${exitCode}, ${attempts}`;
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** Whether a copy of the result is still to be sent. */
export function isResultDue({ exchange, reply }: JobResultDelivery): boolean {
  return exchange === 'waiting' || exchange === 'unrouted' || reply === 'waiting';
}

export interface Delivered {
  readonly project: string;
  readonly name: string;
  readonly messageId: string;
  readonly exchange?: 'confirmed' | 'unrouted';
  readonly reply?: 'confirmed' | 'dropped';
}

/** What became of the copies of a result. A copy that was confirmed stays so. Repeating it is harmless. */
export function recordDelivery(
  snapshot: Snapshot,
  { project, name, messageId, exchange, reply }: Delivered,
): { readonly plan: Plan } {
  const key = keys.job(project, name);
  const entry = snapshot.get('job', key);
  const result = entry?.value.status.result;
  if (!entry || result?.messageId !== messageId) return { plan: emptyPlan };
  const changed: JobResultDelivery = {
    ...result,
    ...(exchange === undefined || result.exchange === 'confirmed' ? {} : { exchange }),
    ...(reply === undefined || result.reply !== 'waiting' ? {} : { reply }),
  };
  if (changed.exchange === result.exchange && changed.reply === result.reply) return { plan: unchanged(entry) };
  const { value, revision } = entry;
  return {
    plan: {
      changes: [{ key, ifRevision: revision, value: { ...value, status: { ...value.status, result: changed } } }],
    },
  };
}
