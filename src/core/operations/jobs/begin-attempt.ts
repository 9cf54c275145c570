// The begin of an attempt: a Plan that creates its instance, and what the job knows of it then.

import type { Job, JobStatus } from '../../../api/resources/job.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { createInstance } from '../instance.ts';
import { counted } from '../warm-pools/claim.ts';
import { attemptName, attemptSpec, imageWordOf, jobLabel, runsOnLabel } from './attempt.ts';
import { claimForJob, poolAttemptSpec, poolOfJob } from './claimed-attempt.ts';

/** As many earlier hosts are avoided; more could leave none. */
const avoidedMax = 8;

interface Begun {
  readonly plan: Plan;
  /** To be written in the same Plan. */
  readonly status: JobStatus;
}

/** Throws `ApiError` as the create of an instance does: `QuotaExceeded` may pass, the others do not. */
export function beginAttempt(snapshot: Snapshot, job: Job, ctx: Context): Begun {
  const { metadata, spec, status } = job;
  const number = status.attempt + 1;
  const labels = { ...metadata.labels, [jobLabel]: metadata.name, [runsOnLabel]: imageWordOf(spec) };
  const pool = spec.warmPool === undefined ? undefined : poolOfJob(snapshot, metadata.project, spec);
  // Later attempts go to other hosts, with a guest that is new.
  const mayClaim = pool !== undefined && number === 1 && spec.repo === undefined;
  const claimed = mayClaim ? claimForJob(snapshot, pool, job, labels, ctx) : undefined;
  if (claimed) return begun(job, { changes: claimed.changes }, claimed.instance.metadata, ctx);
  const avoided = failedHosts(status);
  const input = {
    project: metadata.project,
    name: freeName(snapshot, metadata, number),
    labels,
    spec: pool ? poolAttemptSpec(spec, pool.value, avoided) : attemptSpec(spec, avoided),
  };
  const { plan, key } = createInstance(snapshot, input, { ...ctx, traceParent: metadata.traceParent });
  const created = plan.changes.find((change) => change.key === key)?.value;
  const id = created?.kind === 'instance' ? created.metadata.id : '';
  const missed = mayClaim ? [counted(pool, false)] : [];
  return begun(job, { ...plan, changes: [...plan.changes, ...missed] }, { id, name: input.name }, ctx);
}

function begun(
  { status }: Job,
  plan: Plan,
  { id: instanceId, name }: { readonly id: string; readonly name: string },
  ctx: Context,
): Begun {
  const number = status.attempt + 1;
  const attempt = { number, instance: name, instanceId, createdAtMs: ctx.nowMs };
  const { retryAtMs: _retryAtMs, reason: _reason, message: _message, exitCode: _exitCode, ...kept } = status;
  return { plan, status: { ...kept, attempt: number, instance: name, attempts: [...status.attempts, attempt] } };
}

function freeName(snapshot: Snapshot, { project, name: job }: Job['metadata'], number: number): string {
  for (let tries = 0; ; tries++) {
    const name = attemptName(job, number, tries);
    if (!snapshot.get('instance', keys.instance(project, name))) return name;
  }
}

/** Where earlier attempts ended for a reason that was not the program's. */
function failedHosts({ attempts }: JobStatus): string[] {
  const hosts = attempts.flatMap(({ host, outcome }) => (outcome === 'infrastructure' && host ? [host] : []));
  return [...new Set(hosts)].slice(-avoidedMax);
}
