// The end of an attempt: writes the verdict; then another attempt follows, or the job ends. The final phase is written
// once, together with the removal of the instance and the result that is to be published.

import type { Instance } from '../../../api/resources/instance.ts';
import type { Job, JobAttempt, JobPhase, JobStatus } from '../../../api/resources/job.ts';
import { jobResult } from '../../operations/jobs/job-result.ts';
import type { Verdict } from '../../operations/jobs/judge.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import type { Change, Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { sleepMsMax } from '../controller.ts';
import { put, removalOf } from './job-parts.ts';

/** Before each further attempt; the last is for all that follow. actions-runner-controller has the same steps. */
const retryDelaysMs = [1_000, 5_000, 10_000, 20_000, 40_000, 80_000] as const;
interface Ended {
  readonly attempt: JobAttempt;
  readonly instance: Entry<Instance> | undefined;
  readonly verdict: Verdict;
}

/** Writes the verdict; then another attempt follows, or the job ends. */
export function endAttempt(snapshot: Snapshot, entry: Entry<Job>, ended: Ended, ctx: Context): Plan {
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
export function finish(
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
