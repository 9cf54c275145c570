// What the end of a run of ansible-playbook means, in words for people. Pure. It never shows a secret: known values are blanked out.

import { isRecord } from '../../../../base/is-record.ts';
import type { ProgressEvent } from './run-folder.ts';
import { type Hide, plainLine } from '../../plain-line.ts';

export type Outcome =
  | { readonly ok: true; readonly found: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly message: string };

export interface EndedRun {
  /** Undefined: it is not known. */
  readonly exitCode: number | undefined;
  /** Why we ended it. */
  readonly stopped?: string;
  readonly events: readonly ProgressEvent[];
  readonly output: string;
  readonly hide: Hide;
}

/** Of ansible-core 2.14: `TaskQueueManager.RUN_*` and `CLI.cli_executor`. */
const exitCodes: Readonly<Record<number, string>> = {
  1: 'an error ended it',
  2: 'a task failed',
  4: 'a host was unreachable, or the playbook cannot be read',
  5: 'its options are not accepted',
  6: 'its text is not UTF-8',
  8: 'a play was ended for all hosts',
  99: 'it was interrupted',
  124: 'it ran for too long, and no server was there to end it',
  126: 'ansible-playbook cannot be run',
  127: 'ansible-playbook is not installed; install the package ansible-core',
  250: 'ansible-playbook failed unexpectedly',
};

export function outcomeOf({ exitCode, stopped, events, output, hide }: EndedRun): Outcome {
  const failed = (why: string): Outcome => ({ ok: false, message: plainLine(hide(why), 1_000) });
  if (stopped !== undefined) return failed(`${stopped}${during(events)}`);
  if (exitCode === undefined)
    return failed(`the playbook was killed, or its machine restarted: how it ended is not known${during(events)}`);
  if (exitCode !== 0) {
    const why = faultOf(events) ?? `${meaningOf(exitCode)}${tailOf(hide(output))}`;
    return failed(`the playbook ended with exit code ${exitCode}: ${why}`);
  }
  const end = events.findLast(({ event }) => event === 'end');
  // ansible-playbook ends with 0 when no host fits its pattern: nothing was done.
  if (!isRecord(end?.['hosts']) || Object.keys(end['hosts']).length === 0)
    return failed("the playbook ran on no host: its hosts must include the spare's host, as `hosts: all` does");
  return { ok: true, found: textsOf(end['found']) };
}

/** The task that runs, for a person who waits. */
export function progressOf(events: readonly ProgressEvent[]): string | undefined {
  const at = events.findLastIndex(({ event }) => event === 'task');
  const name = events[at]?.['name'];
  const number = events.slice(0, at + 1).filter(({ event }) => event === 'task').length;
  if (typeof name !== 'string') return undefined;
  return plainLine(name === '' ? `task ${number}` : `task ${number}: ${name}`, 200);
}

function meaningOf(exitCode: number): string {
  const signal = exitCode > 128 && exitCode < 128 + 65 ? `signal ${exitCode - 128} ended it` : 'it failed';
  return exitCodes[exitCode] ?? signal;
}

function during(events: readonly ProgressEvent[]): string {
  const task = progressOf(events);
  return task === undefined ? '' : ` (during ${task})`;
}

function faultOf(events: readonly ProgressEvent[]): string | undefined {
  const fault = events.findLast(({ event }) => event === 'failed' || event === 'unreachable');
  if (fault === undefined) return undefined;
  const { host, task, message, event } = textsOf(fault);
  const what = task === undefined || task === '' ? 'a task' : `task "${task}"`;
  const why = message === undefined || message === '' ? '' : `: ${message}`;
  return event === 'unreachable' ? `${host} is unreachable${why}` : `${what} failed on ${host}${why}`;
}

/** What it printed last says what no event does, such as a fault in the playbook's syntax. */
function tailOf(output: string): string {
  const text = output.trim().slice(-600);
  return text === '' ? '' : `: ${text}`;
}

function textsOf(value: unknown): Record<string, string> {
  if (!isRecord(value)) return {};
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, text]) => (typeof text === 'string' ? [[key, text]] : [])),
  );
}
