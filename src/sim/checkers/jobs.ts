// Jobs: an attempt has one instance, which is removed when the attempt is over and not before; a verdict is written once.
// At rest every job has ended, or waits with a reason, and nothing is left of those that ended.

import type { Instance } from '../../api/resources/instance.ts';
import { isFinal, type Job } from '../../api/resources/job.ts';
import { jobLabel } from '../../core/operations/jobs/attempt.ts';
import { conditionOf } from '../../core/state/conditions.ts';
import { restored } from '../../core/state/guest-phase.ts';
import type { Commit, RecordEvent } from '../history.ts';
import type { Checker, Facts } from './checker.ts';

export const jobsChecker = (facts: Facts): Checker => new JobsChecker(facts);

class JobsChecker implements Checker {
  readonly invariant = 3;
  readonly overRestore = 'after';
  readonly #facts: Facts;

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  onCommit({ events }: Commit): string | undefined {
    for (const event of events) {
      const fault = this.#faultOf(event);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  *unrest(): Iterable<string> {
    const { state, dead } = this.#facts;
    const instances = new Map<string, Instance>();
    for (const instance of state.list('instance')) instances.set(instance.metadata.id, instance);
    for (const job of state.list('job')) {
      const last = job.status.attempts.at(-1);
      const instance = instances.get(last?.instanceId ?? '');
      const fault = unrestOf(job, instance, (host) => dead.has(host));
      if (fault !== undefined) yield `job ${job.metadata.name} ${fault}`;
    }
  }

  #faultOf({ before, after }: RecordEvent): string | undefined {
    if (after?.kind === 'job') return faultOfJob(before?.kind === 'job' ? before : undefined, after);
    if (before?.kind === 'job' && after === null)
      return isFinal(before.status.phase) ? undefined : `job ${before.metadata.name} was removed before its end`;
    if (before?.kind !== 'instance') return undefined;
    return this.#faultOfInstance(before, after?.kind === 'instance' ? after : undefined);
  }

  /** The instance of an attempt is deleted in the commit of its verdict or later, unless somebody else asked for it. */
  #faultOfInstance(before: Instance, after: Instance | undefined): string | undefined {
    const owner = before.metadata.labels[jobLabel];
    if (owner === undefined || before.metadata.deletionRequestedAtMs !== undefined) return undefined;
    if (after !== undefined && after.metadata.deletionRequestedAtMs === undefined) return undefined;
    const { state, intents } = this.#facts;
    const { id, name, project } = before.metadata;
    if (intents.deletesAsked.has(id)) return undefined;
    const attempt = state
      .get('job', `jobs/${project}/${owner}`)
      ?.status.attempts.find((each) => each.instanceId === id);
    if (attempt !== undefined && attempt.outcome === undefined)
      return `instance ${name} was removed while attempt ${attempt.number} of job ${owner} went on`;
    return undefined;
  }
}

function faultOfJob(before: Job | undefined, after: Job): string | undefined {
  const { name } = after.metadata;
  const { attempts, attempt } = after.status;
  if (attempts.filter(({ outcome }) => outcome === undefined).length > 1) return `job ${name} has two attempts at once`;
  if (new Set(attempts.map(({ instanceId }) => instanceId)).size < attempts.length)
    return `two attempts of job ${name} have one instance`;
  if (attempt !== attempts.length) return `job ${name} is at attempt ${attempt} and lists ${attempts.length}`;
  if (attempts.length > after.spec.retries.max + 1) return `job ${name} has had ${attempts.length} attempts`;
  if (!before || before.metadata.id !== after.metadata.id) return undefined;
  if (isFinal(before.status.phase) && (before.status.phase !== after.status.phase || !sameAttempts(before, after)))
    return `job ${name} was ${before.status.phase} and is ${after.status.phase}`;
  const lost = before.status.attempts.find((each, i) => each.outcome !== undefined && !same(each, attempts[i]));
  return lost && `the verdict on attempt ${lost.number} of job ${name} has changed`;
}

function sameAttempts(a: Job, b: Job): boolean {
  return same(a.status.attempts, b.status.attempts);
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function unrestOf(
  { metadata, status }: Job,
  instance: Instance | undefined,
  isDead: (host: string) => boolean,
): string | undefined {
  if (isFinal(status.phase)) {
    if (status.heldUntilMs !== undefined) return undefined;
    const left = instance !== undefined && !isDead(instance.status.host ?? '');
    if (left) return 'has ended, and its instance is still there';
    return metadata.deletionRequestedAtMs === undefined || instance ? undefined : 'is deleted, and its record stays';
  }
  // It is unknown what runs on a host that has not come back since a restore; such an attempt is given up after an hour.
  if (isDead(instance?.status.host ?? '') && runningReasonOf(instance) === restored) return undefined;
  if (status.phase !== 'Queued') return `stays ${status.phase} in attempt ${status.attempt}`;
  if (instance?.status.phase === 'Pending' || status.reason !== undefined) return undefined;
  return 'waits without saying why';
}

function runningReasonOf(instance: Instance | undefined): string | undefined {
  return instance && conditionOf(instance.status.conditions, 'Running')?.reason;
}
