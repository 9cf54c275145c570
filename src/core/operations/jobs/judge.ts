// What the instance of an attempt says about its job: one total decision over the states of instance and run. Pure; it
// changes nothing.
//
//   instance ►        gone            Pending   Scheduled  guest comes up   Exited, Failed, Stopped
//   run ▼
//   none, waiting     infrastructure  Queued    Placing    Booting *        infrastructure
//   running           infrastructure  –         –          Running *        infrastructure, once its host had time to say more
//   finishing         infrastructure  –         –          Finishing *      the same
//   ended             its outcome, whatever the instance does
//
// *: each has a limit (`limits`), after which the attempt is given up: the control plane does not wait for a guest, an
// agent or a program for ever. A host that is lost is no reason to wait: HostLost is infrastructure at once.

import type { Instance } from '../../../api/resources/instance.ts';
import type { Job, JobAttempt, JobPhase } from '../../../api/resources/job.ts';
import type { RunStatus } from '../../../api/resources/run.ts';
import { conditionOf } from '../../state/conditions.ts';
import { hostLost } from '../../state/guest-phase.ts';

/** How an attempt ended. */
export interface Verdict {
  readonly outcome: NonNullable<JobAttempt['outcome']>;
  readonly reason: string;
  readonly message: string;
  readonly exitCode?: number;
}

export type Judgement =
  | { readonly over: Verdict }
  /** It goes on; look again after `againMs` at the latest. */
  | { readonly over?: undefined; readonly phase: JobPhase; readonly againMs: number };

/** How long an attempt may stay in one state, in milliseconds. */
export const limits = {
  /** From the placement to a guest that runs: a large image may come over a slow line. */
  preparing: 3_600_000,
  /** From a guest that runs to the begin of its program; GARM gives its runners 20 minutes. */
  booting: 1_200_000,
  /** Beyond the program's own limit and grace period, for an agent that is slow to say that it ended it. */
  late: 120_000,
  /** For the log and the artifacts of a program that has ended. */
  finishing: 1_800_000,
  /** For a host to say how a program ended whose guest has ended. */
  lastWords: 60_000,
} as const;

/** Reasons that another host or another time cannot change: such an attempt is a failure of the job, and not retried. */
const hopeless: ReadonlySet<string> = new Set(['CommitNotFound', 'RepositoryRefused', 'NoSuchFile']);

/** `instance`: that of the job's current attempt; undefined: it is gone, or its name belongs to another. */
export function judge(job: Job, instance: Instance | undefined, nowMs: number): Judgement {
  if (!instance) {
    return lost('InstanceRemoved', 'its instance was removed');
  }
  const run = instance.status.guest?.run;
  // What was cancelled and then lost is cancelled: it would not be tried again.
  if (run?.state === 'ended' && !(run.outcome === 'lost' && job.status.cancel))
    return { over: verdictOf(run, job.status.cancel) };
  const cancelled = cancelledVerdict(job, instance, nowMs);
  if (cancelled) return { over: cancelled };
  if (instance.metadata.deletionRequestedAtMs !== undefined) {
    return lost('InstanceRemoved', 'its instance was removed');
  }
  switch (instance.status.phase) {
    case 'Pending':
      return { phase: 'Queued', againMs: hourMs };
    case 'Scheduled':
      return until('Placing', (instance.status.scheduledAtMs ?? nowMs) + limits.preparing, nowMs, neverCameUp);
    case 'Starting':
      return until('Booting', (instance.status.scheduledAtMs ?? nowMs) + limits.preparing, nowMs, neverCameUp);
    case 'Running':
    case 'Suspended':
    case 'Stopping':
      return judgeRunning(job, instance, nowMs);
    case 'Stopped':
    case 'Exited':
    case 'Failed':
    case 'Deleting':
      return judgeEnded(instance, nowMs);
  }
}

const hourMs = 3_600_000;

function judgeRunning({ spec, status }: Job, instance: Instance, nowMs: number): Judgement {
  const { runningAtMs = nowMs, guest } = instance.status;
  const run = guest?.run;
  if (run === undefined || run.state === 'waiting')
    // A guest of a warm pool has run for long before it got the program.
    return until('Booting', Math.max(runningAtMs, instance.status.claimed?.atMs ?? 0) + limits.booting, nowMs, {
      reason: 'BootTimeout',
      message: `the guest did not begin the program within ${limits.booting / 60_000} minutes of its start; its console may say why`,
    });
  const startedAtMs = status.startedAtMs ?? nowMs;
  const endMs = startedAtMs + spec.timeoutMs + (instance.spec.run?.graceMs ?? 0) + limits.late;
  if (run.state === 'finishing')
    return until('Finishing', endMs + limits.finishing, nowMs, {
      reason: 'ResultsLate',
      message: 'the program has ended, and its host could not send its log and artifacts in time',
    });
  if (nowMs >= endMs) return { over: timedOut(spec.timeoutMs) };
  return { phase: 'Running', againMs: endMs - nowMs };
}

/** The guest has ended, and its run has not: the host says more soon, unless it is lost. */
function judgeEnded({ status }: Instance, nowMs: number): Judgement {
  const running = conditionOf(status.conditions, 'Running');
  const reason = running?.reason ?? 'GuestEnded';
  const message = running?.message ?? 'the guest ended';
  const state = status.guest?.run?.state;
  const waits = (state === 'running' || state === 'finishing') && reason !== hostLost && reason !== 'HostRemoved';
  if (waits) {
    const leftMs = leftOf({ sinceMs: running?.sinceMs ?? nowMs, limitMs: limits.lastWords, nowMs });
    if (leftMs > 0) return { phase: 'Finishing', againMs: leftMs };
  }
  if (hopeless.has(reason)) return { over: { outcome: 'failure', reason, message } };
  return lost(reason, message);
}

/** Nothing has begun yet, or the host had its time to end the program. */
function cancelledVerdict({ status: { cancel } }: Job, instance: Instance, nowMs: number): Verdict | undefined {
  if (!cancel) return undefined;
  const verdict: Verdict = { outcome: 'cancelled', reason: cancel.reason, message: cancel.message };
  const state = instance.status.guest?.run?.state;
  if (state !== 'running' && state !== 'finishing') return verdict; // never begun, or lost
  if (instance.metadata.deletionRequestedAtMs !== undefined) return verdict;
  const patience = (instance.spec.run?.graceMs ?? 0) + limits.late;
  return leftOf({ sinceMs: cancel.atMs, limitMs: patience, nowMs }) > 0 ? undefined : verdict;
}

/** What is left of a short limit. `sinceMs` may come from a clock far ahead of this one: that is not waited for. */
function leftOf(wait: { readonly sinceMs: number; readonly limitMs: number; readonly nowMs: number }): number {
  const leftMs = wait.sinceMs + wait.limitMs - wait.nowMs;
  return leftMs > 2 * wait.limitMs ? 0 : leftMs;
}

/** A reason of a program that exited says what is missing of its log or artifacts. */
function verdictOf(run: RunStatus, cancel: Job['status']['cancel']): Verdict {
  const { outcome, exitCode, reason, message } = run;
  const code = exitCode === undefined ? {} : { exitCode };
  switch (outcome) {
    case 'exited':
      return exitCode === 0
        ? { outcome: 'succeeded', reason: reason ?? 'Succeeded', message: message ?? 'the program succeeded', ...code }
        : {
            outcome: 'failure',
            reason: reason ?? 'ExitCode',
            message: message ?? exitMessage(exitCode ?? 255),
            ...code,
          };
    case 'cancelled':
      return {
        outcome: 'cancelled',
        reason: cancel?.reason ?? reason ?? 'Cancelled',
        message: cancel?.message ?? message ?? 'it was stopped',
        ...code,
      };
    case 'timedOut':
      return { outcome: 'timedOut', reason: 'TimedOut', message: message ?? 'its time limit was over', ...code };
    default:
      return {
        outcome: hopeless.has(reason ?? '') ? 'failure' : 'infrastructure',
        reason: reason ?? 'RunLost',
        message: message ?? 'the guest ended before the program did',
        ...code,
      };
  }
}

/** As a shell has it: 126 and 127 for what cannot be run, 128 + n for signal n. */
function exitMessage(code: number): string {
  if (code === 127) return 'the program ended with exit code 127: a command was not found';
  if (code === 126) return 'the program ended with exit code 126: a command is not executable';
  if (code > 128 && code <= 128 + 64) return `the program was ended by signal ${code - 128}`;
  return `the program ended with exit code ${code}`;
}

function timedOut(timeoutMs: number): Verdict {
  return { outcome: 'timedOut', reason: 'TimedOut', message: `its time limit of ${timeoutMs / 1000} s was over` };
}

const neverCameUp = {
  reason: 'NeverCameUp',
  message: `its guest did not come up within ${limits.preparing / 60_000} minutes of its placement`,
};

function lost(reason: string, message: string): Judgement {
  return { over: { outcome: 'infrastructure', reason, message } };
}

function until(
  phase: JobPhase,
  endMs: number,
  nowMs: number,
  late: { readonly reason: string; readonly message: string },
): Judgement {
  return nowMs >= endMs ? lost(late.reason, late.message) : { phase, againMs: endMs - nowMs };
}
