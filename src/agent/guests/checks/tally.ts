// What the checks of one run of a guest have shown so far: a pure state machine. It neither probes nor waits.
//
//   starting ──startup passed──► started ──readiness passed──► ready ──readiness failed──► started
//      │                            │                            │
//      └── startup failed ──────────┴──── liveness failed ───────┴──► dead, for the rest of this run
//
// A check passes after `successes` good attempts in a row, and fails after `failures` bad ones.

import { type CheckName, type Checks, checkNames, type FailingCheck, timesOf } from '../../../api/resources/check.ts';

export type Attempt = { readonly ok: true } | { readonly ok: false; readonly message: string };

interface InRow {
  readonly good: number;
  readonly bad: number;
}

export interface Tally {
  /** The start-up check has passed, or there is none. */
  readonly started: boolean;
  /** The readiness check passes; without one: true. */
  readonly passing: boolean;
  /** What holds the guest back, or has ended it. */
  readonly failing?: FailingCheck;
  readonly dead?: FailingCheck;
  readonly rows: Readonly<Partial<Record<CheckName, InRow>>>;
}

/** What outlives the agent. */
export type KeptTally = Pick<Tally, 'started' | 'passing' | 'dead'>;

export function firstTally(checks: Checks, kept?: KeptTally): Tally {
  const started = checks.startup === undefined || kept?.started === true;
  const passing = checks.readiness === undefined || (started && kept?.passing === true);
  return {
    started,
    passing,
    rows: {},
    ...(kept?.dead === undefined ? {} : { dead: kept.dead, failing: kept.dead }),
    ...(kept?.dead !== undefined || (started && passing) ? {} : { failing: waiting(started) }),
  };
}

const waiting = (started: boolean): FailingCheck =>
  started
    ? { name: 'readiness', message: 'the readiness check has not passed yet' }
    : { name: 'startup', message: 'the start-up check has not passed yet' };

/** The checks to attempt now. */
export function dueChecks(checks: Checks, { started, dead }: Tally): CheckName[] {
  if (dead !== undefined) return [];
  if (!started) return ['startup'];
  return checkNames.filter((name) => name !== 'startup' && checks[name] !== undefined);
}

/** The tally after one attempt. An attempt of a check that is not due any more changes nothing. */
export function afterAttempt(checks: Checks, tally: Tally, name: CheckName, attempt: Attempt): Tally {
  const check = checks[name];
  if (check === undefined || !dueChecks(checks, tally).includes(name)) return tally;
  const { failures, successes } = timesOf(check);
  const before = tally.rows[name] ?? { good: 0, bad: 0 };
  const row = attempt.ok ? { good: before.good + 1, bad: 0 } : { good: 0, bad: before.bad + 1 };
  const next: Tally = { ...tally, rows: { ...tally.rows, [name]: row } };
  if (attempt.ok) return row.good === successes ? passed(checks, next, name) : next;
  // A check that goes on failing says its newest reason from time to time, and not at every attempt.
  return row.bad % failures === 0 ? failed(next, name, attempt.message, row.bad) : next;
}

function passed(checks: Checks, tally: Tally, name: CheckName): Tally {
  if (name === 'liveness') return tally;
  const started = true;
  const passing = name === 'readiness' || checks.readiness === undefined;
  const { failing: _failing, ...rest } = tally;
  return { ...rest, started, passing, ...(passing ? {} : { failing: waiting(started) }) };
}

function failed(tally: Tally, name: CheckName, why: string, times: number): Tally {
  const failing: FailingCheck = { name, message: `${texts[name]} failed: ${why}`.slice(0, messageLengthMax) };
  if (name === 'readiness') return { ...tally, passing: false, failing };
  const message = `${texts[name]} failed ${times} times in a row: ${why}`.slice(0, messageLengthMax);
  return { ...tally, passing: false, failing, dead: { name, message } };
}

const messageLengthMax = 512;
const texts: Readonly<Record<CheckName, string>> = {
  startup: 'the start-up check',
  readiness: 'the readiness check',
  liveness: 'the liveness check',
};
