// job: gives each attempt of a job a fresh instance, follows it, and ends the job. The end of an attempt and the removal
// of its instance are one Plan, so no crash leaves one without the other.
//
//   Queued ──▶ Placing ──▶ Booting ──▶ Running ──▶ Finishing ──▶ Succeeded, Failed, Cancelled, TimedOut ──▶ gone,
//     ▲                                                │                                        when it is old
//     └────────────── another attempt, later ──────────┘

import { ApiError } from '../../../api/errors.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import { isFinal, type Job, type JobAttempt, type JobPhase, type JobStatus } from '../../../api/resources/job.ts';
import { beginAttempt } from '../../operations/jobs/begin-attempt.ts';
import { judge } from '../../operations/jobs/judge.ts';
import type { Context } from '../../state/context.ts';
import { eventChange, type NewEvent } from '../../state/events.ts';
import { jobsOf } from '../../state/jobs.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { type Controller, keysOfKind, sleepMsMax } from '../controller.ts';
import { afterwards, removeSurplus, surplus } from './after-job.ts';
import { endAttempt, finish } from './end-attempt.ts';
import { again, instanceOf, put } from './job-parts.ts';

/** A project at its quota is looked at again this often. */
const quotaRetryMs = 5_000;

export const job: Controller = {
  name: 'job',
  watches: ['job', 'instance'],
  wakes({ key, kind, after }, snapshot) {
    if (kind === 'job') return after ? [key] : [];
    const owner = jobsOf(snapshot).ofInstance(key);
    return owner === undefined ? [] : [owner];
  },
  *keys(snapshot) {
    yield* keysOfKind(snapshot, 'job');
    yield surplus;
  },
  reconcile(snapshot, key, ctx) {
    if (key === surplus) return removeSurplus(snapshot, ctx);
    const entry = snapshot.get('job', key);
    if (!entry) return emptyPlan;
    if (isFinal(entry.value.status.phase)) return afterwards(snapshot, entry, ctx);
    const attempt = currentAttempt(entry.value);
    return attempt ? follow(snapshot, entry, attempt, ctx) : begin(snapshot, entry, ctx);
  },
};

/** The attempt that has not ended. */
function currentAttempt({ status }: Job): JobAttempt | undefined {
  const last = status.attempts.at(-1);
  return last !== undefined && last.outcome === undefined ? last : undefined;
}

/** Creates the instance of the next attempt; most often the first came with the job itself. */
function begin(snapshot: Snapshot, entry: Entry<Job>, ctx: Context): Plan {
  const { status } = entry.value;
  if (status.cancel) {
    const { reason, message } = status.cancel;
    return finish(entry, { outcome: 'cancelled', reason, message }, [], ctx);
  }
  const leftMs = (status.retryAtMs ?? 0) - ctx.nowMs;
  if (leftMs > 0) return again(leftMs);
  try {
    const { plan, status: next } = beginAttempt(snapshot, entry.value, ctx);
    return { ...plan, changes: [...plan.changes, put(entry, next)] };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return cannotBegin(entry, error, ctx);
  }
}

/** A quota may have room later. Anything else does not mend itself: the image was removed, or a rule has changed. */
function cannotBegin(entry: Entry<Job>, error: ApiError, ctx: Context): Plan {
  const { status } = entry.value;
  if (error.code !== 'QuotaExceeded')
    return finish(entry, { outcome: 'infrastructure', reason: error.code, message: error.message }, [], ctx);
  if (status.message === error.message) return again(quotaRetryMs);
  return {
    changes: [put(entry, { ...status, reason: error.code, message: error.message })],
    requeueAfterMs: quotaRetryMs,
  };
}

/** Takes in what the instance of the attempt says. */
function follow(snapshot: Snapshot, entry: Entry<Job>, attempt: JobAttempt, ctx: Context): Plan {
  const instance = instanceOf(snapshot, entry.value, attempt);
  const judgement = judge(entry.value, instance?.value, ctx.nowMs);
  if (judgement.over) return endAttempt(snapshot, entry, { attempt, instance, verdict: judgement.over }, ctx);
  const { phase, againMs } = judgement;
  const next = followed(entry.value, attempt, instance?.value, { phase }, ctx);
  const changes: Change[] = next === undefined ? [] : [put(entry, next)];
  if (next !== undefined && next.phase !== entry.value.status.phase)
    changes.push(eventChange(entry.value, phaseEvent(next), ctx));
  const stopped = instance === undefined ? [] : stopForCancel(entry.value, instance);
  return {
    changes: [...changes, ...stopped],
    requeueAfterMs: Math.min(againMs, cancelLookMs(entry.value), sleepMsMax),
  };
}

/** A cancelled program is looked after more often, as nothing may wake its job. */
function cancelLookMs({ status }: Job): number {
  return status.cancel ? 10_000 : sleepMsMax;
}

/** The status with what is new; undefined: nothing is. Growing numbers of bytes alone are nothing new. */
function followed(
  { status }: Job,
  attempt: JobAttempt,
  instance: Instance | undefined,
  now: { readonly phase: JobPhase },
  ctx: Context,
): JobStatus | undefined {
  const started = now.phase === 'Running' || now.phase === 'Finishing';
  const host = instance?.status.host ?? attempt.host;
  const startedAtMs = started ? (attempt.startedAtMs ?? ctx.nowMs) : attempt.startedAtMs;
  // Why its instance waits changes all the time, and is read from there when somebody asks (operations/jobs/outlook.ts).
  const { reason, message } = now.phase === 'Queued' ? status : {};
  const same =
    status.phase === now.phase &&
    host === attempt.host &&
    startedAtMs === attempt.startedAtMs &&
    message === status.message;
  if (same) return undefined;
  const { reason: _reason, message: _message, ...kept } = status;
  const known: JobAttempt = {
    ...attempt,
    ...(host === undefined ? {} : { host }),
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
  };
  return {
    ...kept,
    phase: now.phase,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
    attempts: [...status.attempts.slice(0, -1), known],
  };
}

function phaseEvent({ phase, instance, attempts }: JobStatus): NewEvent {
  const host = attempts.at(-1)?.host;
  const where = host === undefined ? '' : ` on ${host}`;
  return {
    reason: phase,
    message: `${phase.toLowerCase()}: instance ${instance ?? ''}${where}`,
    ...(host === undefined ? {} : { host }),
  };
}

/** Its agent sends SIGTERM, and after the grace period SIGKILL. */
function stopForCancel({ status }: Job, instance: Entry<Instance>): Change[] {
  const { spec, metadata } = instance.value;
  if (!status.cancel || spec.powerState === 'stopped') return [];
  return [
    {
      key: instance.key,
      ifRevision: instance.revision,
      value: {
        ...instance.value,
        metadata: { ...metadata, generation: metadata.generation + 1 },
        spec: { ...spec, powerState: 'stopped' },
      },
    },
  ];
}
