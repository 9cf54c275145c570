// How a job is displayed: its page, what it waits for, and how it ended.

import type { Job, JobAttempt, JobPhase } from '../../api/resources/job.ts';
import { CommandError, CommandExit, exitCodes } from '../exit-codes.ts';
import { fieldLines } from '../print/output.ts';
import { age, bytes, seconds } from '../options/units.ts';

/** `isFinal` of api/resources/job.ts, which would load schemas. */
export function hasEnded(phase: JobPhase): boolean {
  return phase === 'Succeeded' || phase === 'Failed' || phase === 'Cancelled' || phase === 'TimedOut';
}

export function byAge(a: Job, b: Job): number {
  const [one, other] = [a.metadata, b.metadata];
  return (
    one.project.localeCompare(other.project) ||
    one.createdAtMs - other.createdAtMs ||
    one.name.localeCompare(other.name)
  );
}

/** What a job does that has not ended; for one line of progress. */
export function standing(job: Job, nowMs: number): string {
  const { phase, cancel } = job.status;
  if (cancel) return 'being cancelled';
  const reason = phase === 'Queued' ? reasonOfJob(job, nowMs) : '';
  return `${phase}${reason === '' ? '' : `, ${reason}`}`;
}

/** What it waits for, or why it ended so; empty when there is nothing to say. */
export function reasonOfJob({ status }: Job, nowMs: number): string {
  const { phase, queuePosition, estimatedStartMs, message = '' } = status;
  if (phase === 'Succeeded') return missingOf(status) ?? '';
  if (phase !== 'Queued') return message;
  const startsInMs = (estimatedStartMs ?? 0) - nowMs;
  return [
    queuePosition === undefined ? '' : `${ordinal(queuePosition)} in the queue`,
    startsInMs > 0 ? `starts in about ${age(startsInMs)}` : '',
    message,
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** What did not arrive of the log or artifacts of a program that has exited. */
function missingOf({ reason, message }: Job['status']): string | undefined {
  return reason === undefined || reason === 'Succeeded' || reason === 'ExitCode' ? undefined : message;
}

/** `1st`, `2nd`, `11th`. */
function ordinal(number: number): string {
  const teens = number % 100 >= 11 && number % 100 <= 13;
  const ending = teens ? 'th' : (['th', 'st', 'nd', 'rd'][number % 10] ?? 'th');
  return `${number}${ending}`;
}

export function jobLines(job: Job, nowMs: number): string[] {
  const { metadata, spec, status } = job;
  const { name } = metadata;
  const ended = hasEnded(status.phase);
  const ranMs = status.startedAtMs === undefined ? undefined : (status.endedAtMs ?? nowMs) - status.startedAtMs;
  return [
    `${name}  ${status.cancel && !ended ? 'being cancelled' : status.phase}`,
    ...fieldLines(
      [
        ['why', reasonOfJob(job, nowMs)],
        ['exit code', status.exitCode === undefined ? undefined : String(status.exitCode)],
        ['runs on', spec.image ?? spec.label ?? 'the default label'],
        ['commit', spec.repo === undefined ? undefined : `${spec.repo.commit} of ${spec.repo.url}`],
        ['program', spec.script === undefined ? (spec.repo?.path ?? '.solstice/job.sh') : firstLine(spec.script)],
        ['instance', status.instance],
        ['held', heldText(job, nowMs)],
        ...status.attempts.map((attempt): [string, string] => ['attempt', attemptText(attempt, nowMs)]),
        ['ran for', ranMs === undefined ? undefined : seconds(Math.max(0, ranMs))],
        ['log', status.logBytes === undefined ? undefined : bytes(status.logBytes)],
        ['artifacts', spec.artifacts.length === 0 ? undefined : spec.artifacts.join(', ')],
        ...Object.entries(metadata.labels).map(([key, value]): [string, string] => ['label', `${key}=${value}`]),
        ['age', age(nowMs - metadata.createdAtMs)],
        ['more', moreOf(job)],
      ],
      '  ',
    ),
  ];
}

function moreOf({ metadata: { name }, spec, status }: Job): string {
  return [
    `berth job logs ${hasEnded(status.phase) ? '' : '-f '}${name}`,
    ...(hasEnded(status.phase) && spec.artifacts.length > 0 ? [`berth job artifacts get ${name}`] : []),
    hasEnded(status.phase) ? `berth job retry ${name}` : `berth job cancel ${name}`,
  ].join(', ');
}

function attemptText(attempt: JobAttempt, nowMs: number): string {
  const { number, instance, host, outcome, exitCode, message, createdAtMs, endedAtMs } = attempt;
  const what =
    outcome === undefined
      ? `under way for ${age(nowMs - createdAtMs)}`
      : `${outcome}${exitCode === undefined || exitCode === 0 ? '' : `, exit code ${exitCode}`} after ${age((endedAtMs ?? createdAtMs) - createdAtMs)}`;
  const why = message !== undefined && outcome !== 'succeeded' && outcome !== 'failure' ? `: ${message}` : '';
  return `${number}  ${instance}${host === undefined ? '' : ` on ${host}`}  ${what}${why}`;
}

function heldText({ spec, status }: Job, nowMs: number): string | undefined {
  const { heldUntilMs, instance } = status;
  if (heldUntilMs === undefined || instance === undefined || heldUntilMs <= nowMs) return undefined;
  const way = spec.sshKeys.length > 0 ? 'ssh' : 'console'; // ssh needs a key
  return `instance ${instance} stays for ${age(heldUntilMs - nowMs)}: berth ${way} ${instance}; let somebody else in: berth share ${instance}; end it early: berth rm ${instance}`;
}

function firstLine(script: string): string {
  const [first = '', ...rest] = script.trim().split('\n');
  const shown = first.length > 80 ? `${first.slice(0, 79)}…` : first;
  return rest.length === 0 ? shown : `${shown} (${rest.length + 1} lines)`;
}

/** The end of `berth job run`. Throws what makes the exit code; returns when the job succeeded. `tell` prints a line for people. */
export function conclude(job: Job, nowMs: number, tell: (line: string) => void): void {
  const { metadata, status } = job;
  const { phase, exitCode, message = '' } = status;
  const name = `job "${metadata.name}"`;
  const missing = exitCode === undefined ? undefined : missingOf(status);
  if (phase === 'Succeeded') {
    if (missing !== undefined) tell(`${name}: ${missing}`);
    return;
  }
  const held = heldText(job, nowMs);
  const advice = held ?? `see: berth job show ${metadata.name}, berth job logs ${metadata.name}`;
  switch (phase) {
    case 'TimedOut':
      throw new CommandError(exitCodes.jobTimedOut, `${name} timed out: ${message}`, {
        advice: held ?? 'give it more time with --timeout, or spec.timeoutMs',
      });
    case 'Cancelled':
      throw new CommandError(exitCodes.jobCancelled, `${name} was cancelled: ${message}`, {
        advice: `run it again: berth job retry ${metadata.name}`,
      });
    default:
      if (exitCode === undefined || exitCode === 0)
        throw new CommandError(exitCodes.jobInfrastructure, `${name} could not be carried out: ${message}`, { advice });
      tell(`${name} failed with exit code ${exitCode}${missing === undefined ? '' : `; ${missing}`}`);
      if (held !== undefined) tell(`  ${held}`);
      throw new CommandExit(exitCode);
  }
}
