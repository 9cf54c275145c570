// job-template: creates the jobs of a schedule. Each time of the schedule is decided on once: a job, or an event that says why there is
// none. The decision and its number are one Plan, so that no crash and no second control plane creates a job twice.

import { ApiError } from '../../../api/errors.ts';
import { isFinal, type Job } from '../../../api/resources/job.ts';
import type { JobSchedule, JobTemplate, JobTemplateStatus } from '../../../api/resources/job-template.ts';
import { jobInput } from '../../operations/job-templates/run.ts';
import { cancelChanges } from '../../operations/jobs/job.ts';
import { submitJob } from '../../operations/jobs/submit-job.ts';
import { type NewCondition, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { type ScheduledTime, lastScheduledTime, nextScheduledTimeMs } from '../../times/scheduled-times.ts';
import { type Controller, keysOfKind, untilNextTimeMs } from '../controller.ts';

export const jobTemplate: Controller = {
  name: 'job-template',
  watches: ['jobTemplate'],
  *wakes({ key, after }) {
    if (after !== null) yield key;
  },
  keys: (snapshot) => keysOfKind(snapshot, 'jobTemplate'),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('jobTemplate', key);
    if (!entry) return emptyPlan;
    const { schedule, paused } = entry.value.spec;
    if (schedule === undefined || paused) return emptyPlan;
    return onSchedule(snapshot, { entry, schedule }, ctx);
  },
};

interface Scheduled {
  readonly entry: Entry<JobTemplate>;
  readonly schedule: JobSchedule;
}

function onSchedule(snapshot: Snapshot, { entry, schedule }: Scheduled, ctx: Context): Plan {
  const { status } = entry.value;
  const time = lastScheduledTime(schedule, ctx.nowMs);
  const nextMs = nextScheduledTimeMs(schedule, ctx.nowMs);
  const requeueAfterMs = untilNextTimeMs(nextMs, ctx.nowMs);
  if (time === undefined || time.number <= (status.handled ?? 0)) return { changes: [], requeueAfterMs };
  const outcome = outcomeOf(snapshot, { entry, schedule, time }, ctx);
  const { nextMs: _nextMs, ...rest } = status;
  const next: JobTemplateStatus = {
    ...rest,
    ...(nextMs === undefined ? {} : { nextMs }),
    ...(outcome.job === undefined
      ? {}
      : {
          jobs: status.jobs + 1,
          last: { job: outcome.job.metadata.name, id: outcome.job.metadata.id, atMs: time.atMs },
        }),
    handled: time.number,
    conditions: withConditions(status.conditions, [conditionOf(outcome)], ctx.nowMs),
  };
  return {
    changes: [
      { key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status: next } },
      ...outcome.changes,
      ...(outcome.job === undefined
        ? [eventChange(entry.value, { type: 'Warning', reason: outcome.reason, message: outcome.message }, ctx)]
        : []),
    ],
    requeueAfterMs,
  };
}

interface Outcome {
  readonly reason: string;
  readonly message: string;
  readonly changes: readonly Change[];
  readonly job?: Job;
}

function conditionOf({ reason, message, job }: Outcome): NewCondition {
  return { type: 'Scheduled', status: job === undefined ? 'False' : 'True', reason, message };
}

function outcomeOf(
  snapshot: Snapshot,
  { entry: { value }, schedule, time }: Scheduled & { readonly time: ScheduledTime },
  ctx: Context,
): Outcome {
  const { name, project } = value.metadata;
  const lateMs = ctx.nowMs - time.atMs;
  if (lateMs >= schedule.catchUpMs + 60_000)
    return {
      reason: 'ScheduleMissed',
      message: `the time ${time.stamp} was missed by ${Math.floor(lateMs / 60_000)} min, and is not made up`,
      changes: [],
    };
  const previous = unfinished(snapshot, value);
  if (previous && schedule.overlap === 'skip')
    return {
      reason: 'ScheduleSkipped',
      message: `job "${previous.value.metadata.name}" has not ended`,
      changes: [],
    };
  try {
    const stem = `${name}-${time.stamp}`;
    const free = snapshot.get('job', keys.job(project, stem)) === undefined;
    const { plan, key } = submitJob(snapshot, { ...jobInput(value, {}), name: free ? stem : '' }, ctx);
    const job = plan.changes.find((change) => change.key === key)?.value;
    if (job?.kind !== 'job') throw new TypeError('a new job is among the changes that create it');
    const why = { reason: 'Superseded', message: `job "${job.metadata.name}" replaces it` };
    const cancelled = previous && schedule.overlap === 'replace' ? cancelChanges(previous, why, ctx) : [];
    return {
      reason: 'Created',
      message: `job "${job.metadata.name}" was created`,
      changes: [...plan.changes, ...withoutKeys(cancelled, plan.changes)],
      job,
    };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { reason: 'ScheduleFailed', message: error.message.slice(0, 1_000), changes: [] };
  }
}

/** The job may supersede the previous one by its own key. */
function withoutKeys(changes: readonly Change[], others: readonly Change[]): readonly Change[] {
  const taken = new Set(others.map(({ key }) => key));
  return changes.some(({ key }) => taken.has(key)) ? [] : changes;
}

function unfinished(snapshot: Snapshot, { metadata, status }: JobTemplate): Entry<Job> | undefined {
  if (status.last === undefined) return undefined;
  const entry = snapshot.get('job', keys.job(metadata.project, status.last.job));
  return entry?.value.metadata.id === status.last.id && !isFinal(entry.value.status.phase) ? entry : undefined;
}
