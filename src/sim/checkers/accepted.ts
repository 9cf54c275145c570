// Invariant 3: every accepted create ends running, finished, failed with a reason, or waiting with a reason that is still true; none
// is lost. An instance is removed only when its deletion was requested, and then it is removed.

import { expiryOf } from '../../api/instances/lifetime.ts';
import { isToRestart } from '../../api/instances/restart-rule.ts';
import { seededPrng } from '../../base/prng.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { Cache } from '../../core/state/cache.ts';
import { keys } from '../../core/state/keys.ts';
import { conditionOf } from '../../core/state/conditions.ts';
import { placement } from '../../core/controllers/placement.ts';
import { powerOn } from '../../core/controllers/power-on.ts';
import type { Context } from '../../core/state/context.ts';
import { jobLabel } from '../../core/operations/jobs/attempt.ts';
import { requestOf } from '../../core/scheduler/request.ts';
import { schedule } from '../../core/scheduler/schedule.ts';
import type { Commit, CommittedState, RecordEvent } from '../history.ts';
import type { Checker, Facts } from './checker.ts';

/**
 * A host that could take a waiting instance must get it within this time: longer than any retry (5 s), shorter than the full pass (60 s),
 * which would hide a missing wake-up.
 */
const waitInVainMsMax = 20_000;
/** Half of that, so that what time alone changes is seen early enough. */
const searchEveryMs = 10_000;

export const acceptedChecker = (facts: Facts): Checker => new AcceptedChecker(facts);

class AcceptedChecker implements Checker {
  readonly invariant = 3;
  readonly #facts: Facts;
  /** Ids of instances whose time was limited at some time. */
  readonly #expiring = new Set<string>();
  /** Since when instances wait though there is room. */
  readonly #inVainSinceMs = new Map<string, number>();
  /** What the last search found. While nothing is committed it stays true, but for what time alone changes. */
  #searched: { readonly at: string; readonly inVain: ReadonlyMap<string, string> } | undefined;

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  onCommit({ events }: Commit): string | undefined {
    for (const event of events) {
      const fault = this.#faultOfEvent(event);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  *unrest(): Iterable<string> {
    const held = this.#heldByDeadHosts();
    const present = new Map<string, Instance>();
    for (const instance of this.#facts.state.list('instance')) present.set(instance.metadata.id, instance);
    yield* this.#unrestOfIntents(present, held);
    const waiting: Instance[] = [];
    for (const instance of present.values()) {
      const bound = this.#facts.dead.has(instance.status.host ?? '');
      if (held.has(instance.metadata.id) && instance.metadata.deletionRequestedAtMs !== undefined) continue;
      const fault = bound ? unrestOfLost(instance) : unrestOf(instance);
      if (fault !== undefined) yield `instance ${instance.metadata.name} ${fault}`;
      const { phase } = instance.status;
      const canWait = phase === 'Pending' || phase === 'Stopped';
      if (canWait && instance.spec.powerState !== 'stopped' && saysWhyItWaits(instance)) waiting.push(instance);
    }
    yield* this.#unrestOfWaiting(waiting);
  }

  overdue(): string | undefined {
    for (const [name, sinceMs] of this.#inVainSinceMs) {
      const waitMs = this.#facts.nowMs() - sinceMs;
      if (waitMs > waitInVainMsMax) return `instance ${name} waits for ${waitMs / 1000} s though there is room for it`;
    }
    return undefined;
  }

  #faultOfEvent({ before, after }: RecordEvent): string | undefined {
    if (before?.kind !== 'instance') return undefined;
    // Those of jobs, workloads and warm pools are removed by Berth itself: checkers/jobs.ts, checkers/workloads/.
    if (before.metadata.labels[jobLabel] !== undefined || before.status.workload !== undefined) return undefined;
    if (before.status.warmPool !== undefined) return undefined;
    const { id, name } = before.metadata;
    if (expiryOf(before) !== undefined) this.#expiring.add(id); // not before its time: checkers/workloads/lifetimes.ts
    const mayGo = this.#expiring.has(id) || this.#facts.intents.deletesAsked.has(id);
    const same = after?.kind === 'instance' && after.metadata.id === id ? after : undefined;
    // The request and the removal may share a commit: the request counts.
    if (same === undefined && !mayGo) return `instance ${name} (${id}) was removed without a request`;
    if (same?.metadata.deletionRequestedAtMs !== undefined && !mayGo)
      return `instance ${name} (${id}) is being deleted without a request`;
    if (same && before.metadata.deletionRequestedAtMs !== undefined && !same.metadata.deletionRequestedAtMs)
      return `the deletion of instance ${name} (${id}) was forgotten`;
    return undefined;
  }

  *#unrestOfIntents(present: ReadonlyMap<string, Instance>, held: ReadonlySet<string>): Iterable<string> {
    const { creates, deletesAsked, deletesAccepted } = this.#facts.intents;
    for (const { key, outcome, instanceId } of creates.values()) {
      if (outcome === 'open') yield `create ${key} has not been answered`;
      if (instanceId === undefined || present.has(instanceId) || deletesAsked.has(instanceId)) continue;
      if (this.#expiring.has(instanceId)) continue;
      yield `create ${key} was accepted as ${instanceId}, which is lost`;
    }
    for (const id of deletesAccepted)
      if (present.has(id) && !held.has(id)) yield `the deletion of ${id} was accepted, but it is still there`;
  }

  *#unrestOfWaiting(waiting: readonly Instance[]): Iterable<string> {
    const { nowMs } = this.#facts;
    const inVain = this.#waitInVain(waiting);
    for (const name of [...this.#inVainSinceMs.keys()]) if (!inVain.has(name)) this.#inVainSinceMs.delete(name);
    for (const [name, host] of inVain) {
      if (!this.#inVainSinceMs.has(name)) this.#inVainSinceMs.set(name, nowMs());
      yield `instance ${name} waits though it fits on ${host}`;
    }
  }

  #waitInVain(waiting: readonly Instance[]): ReadonlyMap<string, string> {
    const { state, nowMs, policy } = this.#facts;
    const at = `${state.newsRevision()} ${Math.floor(nowMs() / searchEveryMs)}`;
    const tasksWait = [...state.list('task')].some(({ status }) => status.phase === 'Pending');
    if (waiting.length === 0 && !tasksWait) this.#searched = undefined;
    else if (this.#searched?.at !== at)
      this.#searched = { at, inVain: waitsInVain(state, waiting, contextOf(nowMs(), policy)) };
    return this.#searched?.inVain ?? new Map<string, string>();
  }

  /** Ids of instances of which something is on a host that is gone for good. */
  #heldByDeadHosts(): ReadonlySet<string> {
    const { state, dead } = this.#facts;
    const held = new Set<string>();
    if (dead.size === 0) return held;
    for (const { host, consumer } of state.list('allocation')) if (dead.has(host)) held.add(consumer.id);
    return held;
  }
}

/** The same for an instance on a host that is gone for good: it must say so, and wait for that host or for an operator. */
function unrestOfLost({ status }: Instance): string | undefined {
  switch (status.phase) {
    case 'Failed':
    case 'Stopped':
    case 'Exited':
      return undefined;
    default:
      return `is ${status.phase} on ${status.host}, which is gone for good`;
  }
}

/** Why this instance cannot be at rest; undefined when it can. */
function unrestOf(instance: Instance): string | undefined {
  const { status, spec, metadata } = instance;
  const { phase } = status;
  const running = conditionOf(status.conditions, 'Running');
  if (metadata.deletionRequestedAtMs !== undefined) return 'is being deleted and does not go';
  switch (phase) {
    case 'Running':
      return spec.powerState === 'running' ? undefined : `runs though it should be ${spec.powerState}`;
    case 'Suspended':
      return spec.powerState === 'suspended' ? undefined : 'is suspended though nobody asks for it';
    case 'Stopped':
      // Its room was taken while it was stopped: it waits on its host, and says so.
      return spec.powerState === 'stopped' || saysWhyItWaits(instance) ? undefined : 'is stopped though it should run';
    case 'Exited':
      return isToRestart(instance) ? 'has ended and is not restarted' : undefined;
    case 'Failed':
      if (!running?.reason || !running.message) return 'has failed without a reason';
      if (running.reason === 'HostLost') return 'is failed for the loss of a host that is back';
      return isToRestart(instance) ? 'has failed and is not restarted' : undefined;
    case 'Pending':
      if (!saysWhyItWaits(instance)) return 'waits without saying why';
      return spec.powerState === 'stopped' ? 'waits for a host though it should be stopped' : undefined;
    default:
      return `stays ${phase} (${running?.reason ?? 'no condition'}: ${running?.message ?? ''})`;
  }
}

/** For a host, or for room on the host that has its disk. */
function saysWhyItWaits({ status }: Instance): boolean {
  const scheduled = conditionOf(status.conditions, 'Scheduled');
  if (scheduled?.status !== 'False' || scheduled.message === '') return false;
  return scheduled.reason !== 'Accepted' && scheduled.reason !== 'Restarting';
}

/** Instances and tasks that wait with a reason and would be placed now, with the host they would get. */
function waitsInVain(state: CommittedState, waiting: readonly Instance[], ctx: Context): Map<string, string> {
  const cache = new Cache(() => 0);
  cache.reset([...state.entries()], 1);
  const found = new Map<string, string>();
  for (const { metadata, status } of waiting) {
    const key = keys.instance(metadata.project, metadata.name);
    const controller = status.host === undefined ? placement : powerOn;
    const { changes } = controller.reconcile(cache, key, ctx);
    if (!changes.some(({ value }) => value?.kind === 'allocation')) continue;
    const placed = changes.find((change) => change.key === key)?.value;
    found.set(metadata.name, (placed?.kind === 'instance' ? placed.status.host : undefined) ?? 'a host');
  }
  for (const task of state.list('task')) {
    const answer = task.status.phase === 'Pending' ? schedule(cache, requestOf(cache, task)) : undefined;
    if (answer?.placed) found.set(`task ${task.metadata.name}`, answer.host);
  }
  return found;
}

function contextOf(nowMs: number, policy: Context['policy']): Context {
  let ids = 0;
  return { nowMs, monotonicMs: nowMs, prng: seededPrng(0), policy, newId: (prefix) => `${prefix}_${++ids}` };
}
