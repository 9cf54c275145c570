// job: gives each attempt of a job a fresh instance, follows it, and ends the job. The end of an attempt and the removal
// of its instance are one Plan, so no crash leaves one without the other.
//
//   Queued ──▶ Placing ──▶ Booting ──▶ Running ──▶ Finishing ──▶ Succeeded, Failed, Cancelled, TimedOut ──▶ gone,
//     ▲                                                │                                        when it is old
//     └────────────── another attempt, later ──────────┘

import { ApiError } from '../../api/errors.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { isFinal, type Job, type JobAttempt, type JobPhase, type JobStatus } from '../../api/resources/job.ts';
import { attemptName, attemptSpec, jobLabel, imageWordOf, runsOnLabel } from '../operations/jobs/attempt.ts';
import { jobResult } from '../operations/jobs/job-result.ts';
import { judge, type Verdict } from '../operations/jobs/judge.ts';
import { createInstance, deleteInstance } from '../operations/instance.ts';
import type { Context } from '../state/context.ts';
import { eventChange, type NewEvent } from '../state/events.ts';
import { jobsOf } from '../state/jobs.ts';
import { keys } from '../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { type Controller, keysOfKind } from './controller.ts';

/** Timers are limited to 24 days; longer waits wake up in between. */
const sleepMsMax = 3_600_000;
/** A project at its quota is looked at again this often. */
const quotaRetryMs = 5_000;
/** Before each further attempt; the last is for all that follow. actions-runner-controller has the same steps. */
const retryDelaysMs = [1_000, 5_000, 10_000, 20_000, 40_000, 80_000] as const;
/** As many earlier hosts are avoided; more could leave none. */
const avoidedMax = 8;

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

function instanceOf(
  snapshot: Snapshot,
  { metadata }: Job,
  attempt: JobAttempt | undefined,
): Entry<Instance> | undefined {
  if (attempt === undefined) return undefined;
  const entry = snapshot.get('instance', keys.instance(metadata.project, attempt.instance));
  return entry?.value.metadata.id === attempt.instanceId ? entry : undefined;
}

function again(afterMs: number): Plan {
  return { changes: [], requeueAfterMs: Math.min(Math.max(0, afterMs), sleepMsMax) };
}

function put(entry: Entry<Job>, status: JobStatus): Change {
  return { key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status } };
}

/** Creates the instance of the next attempt. */
function begin(snapshot: Snapshot, entry: Entry<Job>, ctx: Context): Plan {
  const { metadata, spec, status } = entry.value;
  if (status.cancel) {
    const { reason, message } = status.cancel;
    return finish(entry, { outcome: 'cancelled', reason, message }, [], ctx);
  }
  const leftMs = (status.retryAtMs ?? 0) - ctx.nowMs;
  if (leftMs > 0) return again(leftMs);
  const number = status.attempt + 1;
  const name = freeInstanceName(snapshot, entry.value, number);
  const input = {
    project: metadata.project,
    name,
    labels: { ...metadata.labels, [jobLabel]: metadata.name, [runsOnLabel]: imageWordOf(spec) },
    spec: attemptSpec(spec, failedHosts(status)),
  };
  try {
    const { plan, key } = createInstance(snapshot, input, ctx);
    const created = plan.changes.find((change) => change.key === key)?.value;
    if (created?.kind !== 'instance') return emptyPlan;
    const attempt = { number, instance: name, instanceId: created.metadata.id, createdAtMs: ctx.nowMs };
    const { retryAtMs: _retryAtMs, reason: _reason, message: _message, exitCode: _exitCode, ...kept } = status;
    const next: JobStatus = { ...kept, attempt: number, instance: name, attempts: [...status.attempts, attempt] };
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

function freeInstanceName(snapshot: Snapshot, { metadata }: Job, number: number): string {
  for (let tries = 0; ; tries++) {
    const name = attemptName(metadata.name, number, tries);
    if (!snapshot.get('instance', keys.instance(metadata.project, name))) return name;
  }
}

/** Where earlier attempts ended for a reason that was not the program's. */
function failedHosts({ attempts }: JobStatus): string[] {
  const hosts = attempts.flatMap(({ host, outcome }) => (outcome === 'infrastructure' && host ? [host] : []));
  return [...new Set(hosts)].slice(-avoidedMax);
}

/** Takes in what the instance of the attempt says. */
function follow(snapshot: Snapshot, entry: Entry<Job>, attempt: JobAttempt, ctx: Context): Plan {
  const instance = instanceOf(snapshot, entry.value, attempt);
  const judgement = judge(entry.value, instance?.value, ctx.nowMs);
  if (judgement.over) return endAttempt(snapshot, entry, { attempt, instance, verdict: judgement.over }, ctx);
  const { phase, message, againMs } = judgement;
  const next = followed(entry.value, attempt, instance?.value, { phase, message }, ctx);
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
  now: { readonly phase: JobPhase; readonly message: string | undefined },
  ctx: Context,
): JobStatus | undefined {
  const started = now.phase === 'Running' || now.phase === 'Finishing';
  const host = instance?.status.host ?? attempt.host;
  const startedAtMs = started ? (attempt.startedAtMs ?? ctx.nowMs) : attempt.startedAtMs;
  // Messages with numbers of the fleet change all the time while it waits; those of the queue say it best (`berth queue`).
  const message = now.phase === 'Queued' ? (status.message ?? now.message) : undefined;
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
    ...(message === undefined ? {} : { reason: 'Waiting', message }),
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

interface Ended {
  readonly attempt: JobAttempt;
  readonly instance: Entry<Instance> | undefined;
  readonly verdict: Verdict;
}

/** Writes the verdict; then another attempt follows, or the job ends. */
function endAttempt(snapshot: Snapshot, entry: Entry<Job>, ended: Ended, ctx: Context): Plan {
  const { attempt, instance, verdict } = ended;
  const { spec, status } = entry.value;
  const run = instance?.value.status.guest?.run;
  const host = instance?.value.status.host ?? attempt.host;
  const startedAtMs = attempt.startedAtMs ?? (run?.startedAtMs === undefined ? undefined : ctx.nowMs);
  const over: JobAttempt = {
    ...attempt,
    ...(host === undefined ? {} : { host }),
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
    ...(run?.logBytes === undefined ? {} : { logBytes: run.logBytes }),
    ...(run?.artifactsBytes === undefined ? {} : { artifactsBytes: run.artifactsBytes }),
    ...shortened(verdict),
    endedAtMs: ctx.nowMs,
  };
  const known: Entry<Job> = {
    ...entry,
    value: {
      ...entry.value,
      status: {
        ...status,
        attempts: [...status.attempts.slice(0, -1), over],
        ...(startedAtMs === undefined ? {} : { startedAtMs }),
        ...(run?.logBytes === undefined ? {} : { logBytes: run.logBytes }),
      },
    },
  };
  if (!status.cancel && mayRetry(entry.value, verdict))
    return retryLater(known, verdict, removalOf(snapshot, instance, ctx), ctx);
  const heldUntilMs = holdsUntil(spec.holdOnFailureMs, ended, ctx);
  if (heldUntilMs !== undefined) return finish(known, verdict, [], ctx, heldUntilMs);
  return finish(known, verdict, removalOf(snapshot, instance, ctx), ctx);
}

/** Messages of guests may be long. */
function shortened({ outcome, reason, message, exitCode }: Verdict): Verdict {
  return {
    outcome,
    reason: reason.slice(0, 64),
    message: message.slice(0, 1024),
    ...(exitCode === undefined ? {} : { exitCode }),
  };
}

function mayRetry({ spec, status }: Job, { outcome }: Verdict): boolean {
  if (outcome !== 'infrastructure' && outcome !== 'failure') return false;
  return spec.retries.on.includes(outcome) && status.attempt <= spec.retries.max;
}

function retryLater(entry: Entry<Job>, verdict: Verdict, removal: readonly Change[], ctx: Context): Plan {
  const { status } = entry.value;
  const delayMs = retryDelaysMs[Math.min(status.attempt, retryDelaysMs.length) - 1] ?? retryDelaysMs[0];
  const { instance: _instance, startedAtMs: _startedAtMs, exitCode: _exitCode, ...kept } = status;
  const message = `attempt ${status.attempt}: ${verdict.message}; another follows`.slice(0, 1024);
  return {
    changes: [
      put(entry, { ...kept, phase: 'Queued', reason: verdict.reason, message, retryAtMs: ctx.nowMs + delayMs }),
      ...removal,
      eventChange(entry.value, { type: 'Warning', reason: 'Retrying', message }, ctx),
    ],
    requeueAfterMs: delayMs,
  };
}

/** Until when the instance of a failed program stays: only a guest that runs can be looked into. */
function holdsUntil(holdMs: number, { instance, verdict }: Ended, ctx: Context): number | undefined {
  if (holdMs === 0 || (verdict.outcome !== 'failure' && verdict.outcome !== 'timedOut')) return undefined;
  const phase = instance?.value.status.phase;
  return phase === 'Running' || phase === 'Suspended' ? ctx.nowMs + holdMs : undefined;
}

const finalPhases: Readonly<Record<Verdict['outcome'], JobPhase>> = {
  succeeded: 'Succeeded',
  failure: 'Failed',
  infrastructure: 'Failed',
  cancelled: 'Cancelled',
  timedOut: 'TimedOut',
};

/** The final phase, which is written once, together with all that follows from it. */
function finish(
  entry: Entry<Job>,
  verdict: Verdict,
  removal: readonly Change[],
  ctx: Context,
  heldUntilMs?: number,
): Plan {
  const { retryAtMs: _retryAtMs, ...status } = entry.value.status;
  const { outcome, reason, message, exitCode } = shortened(verdict);
  const next: JobStatus = {
    ...status,
    phase: finalPhases[outcome],
    reason,
    message,
    ...(exitCode === undefined ? {} : { exitCode }),
    endedAtMs: ctx.nowMs,
    ...(heldUntilMs === undefined ? {} : { heldUntilMs }),
  };
  const result = jobResult({ ...entry.value, status: next }, ctx);
  const type = outcome === 'succeeded' || outcome === 'cancelled' ? 'Normal' : 'Warning';
  return {
    changes: [
      put(entry, result === undefined ? next : { ...next, result }),
      ...removal,
      eventChange(entry.value, { type, reason: next.phase, message }, ctx),
    ],
    ...(heldUntilMs === undefined ? {} : { requeueAfterMs: Math.min(heldUntilMs - ctx.nowMs, sleepMsMax) }),
  };
}

function removalOf(snapshot: Snapshot, instance: Entry<Instance> | undefined, ctx: Context): readonly Change[] {
  if (instance === undefined || instance.value.metadata.deletionRequestedAtMs !== undefined) return [];
  return deleteInstance(snapshot, instance.value.metadata, ctx).plan.changes;
}

/** A job that has ended: removes what is left of it, and its record when that is old or was asked for. */
function afterwards(snapshot: Snapshot, entry: Entry<Job>, ctx: Context): Plan {
  const { metadata, status } = entry.value;
  const instance = instanceOf(snapshot, entry.value, status.attempts.at(-1));
  const deleting = metadata.deletionRequestedAtMs !== undefined;
  if (status.heldUntilMs !== undefined) {
    const leftMs = status.heldUntilMs - ctx.nowMs;
    if (leftMs > 0 && instance !== undefined && !deleting) return again(leftMs);
    const { heldUntilMs: _heldUntilMs, ...kept } = status;
    return { changes: [put(entry, kept), ...removalOf(snapshot, instance, ctx)] };
  }
  const removal = removalOf(snapshot, instance, ctx);
  if (removal.length > 0) return { changes: removal };
  if (instance !== undefined) return emptyPlan; // its end wakes this
  const leftMs = (status.endedAtMs ?? 0) + ctx.policy.jobsKeptMs - ctx.nowMs;
  if (leftMs > 0 && isStillNeeded(entry.value)) return again(leftMs);
  return deleting || leftMs <= 0 ? removeRecord(entry) : again(leftMs);
}

/** Its result has not been published, so its record stays. */
function isStillNeeded({ status: { result } }: Job): boolean {
  return result?.exchange === 'waiting' || result?.reply === 'waiting';
}

function removeRecord({ key, revision }: Entry<Job>): Plan {
  return { changes: [{ key, ifRevision: revision, value: null }] };
}

/** Under this key, which belongs to no job, the number of jobs is checked once per full pass. */
const surplus = 'jobs/';
/** As many as the committer joins in one durable write. */
const removedAtOnceMax = 512;

/** Deletes the jobs that ended first, beyond `jobsMax`. */
function removeSurplus(snapshot: Snapshot, ctx: Context): Plan {
  const count = snapshot.count('job') - ctx.policy.jobsMax;
  if (count <= 0) return emptyPlan;
  const ended = [...snapshot.list('job')].filter(
    ({ value }) =>
      isFinal(value.status.phase) &&
      value.status.heldUntilMs === undefined &&
      !isStillNeeded(value) &&
      instanceOf(snapshot, value, value.status.attempts.at(-1)) === undefined,
  );
  ended.sort((a, b) => (a.value.status.endedAtMs ?? 0) - (b.value.status.endedAtMs ?? 0));
  const removed = ended.slice(0, Math.min(count, removedAtOnceMax));
  const changes = removed.map(({ key, revision }) => ({ key, ifRevision: revision, value: null }));
  return removed.length === removedAtOnceMax ? { changes, requeueAfterMs: 0 } : { changes };
}
