// Explain: for each host all rules that refuse an instance, or its score by rule; for a placed instance, why it is
// there; for a pending one, what would change that. The same rules as scheduling.

import type { Explanation, HostExplanation, NearestChange, PlacedExplanation } from '../../api/explanation.ts';
import { type Instance, isToBeOn } from '../../api/resources/instance.ts';
import { type LimitPolicy, limitsOn } from '../queue/limits.ts';
import { preemptionFor } from '../queue/preemption.ts';
import { limitReached } from '../queue/queue.ts';
import { conditionOf } from '../state/conditions.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type GangOutlook, gangOutlook } from './explain-gang.ts';
import { explainQueue } from './explain-queue.ts';
import { withoutItself } from './explain-trial.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { type HostVerdict, verdictsOf } from '../scheduler/engine/full-scan.ts';
import { nearestAtHome, nearestChanges } from './nearest-change.ts';
import { nearestForGang } from './nearest-for-gang.ts';
import { type Request, requestOf } from '../scheduler/request.ts';
import { whyItWaits } from './cpu-advice.ts';
import { outsideHeld } from './outside-held.ts';
import { readPlacedMessage, schedule, summarize } from '../scheduler/schedule.ts';
import { bestFirst, type Brief, scan } from './scan.ts';
import { finish, type Steps } from '../scheduler/steps.ts';
import { takeOver, taskOf } from '../scheduler/take-over.ts';
import { listed } from '../scheduler/words.ts';

export interface ExplainOptions {
  /** Number of hosts listed in detail, from `offset` on. */
  readonly limit: number;
  readonly offset: number;
  /** For the order of the queue. */
  readonly nowMs: number;
  /** For the limits of an instance not created yet; without it limits are not checked. */
  readonly policy?: LimitPolicy;
}

/** All hosts in one step. */
export function explain(snapshot: Snapshot, instance: Instance, options: Partial<ExplainOptions> = {}): Explanation {
  return finish(
    explainInSteps(snapshot, instance, { limit: Number.POSITIVE_INFINITY, offset: 0, nowMs: 0, ...options }),
  );
}

export function* explainInSteps(
  snapshot: Snapshot,
  instance: Instance,
  { limit, offset, nowMs, policy }: ExplainOptions,
): Steps<Explanation> {
  const request = requestOf(snapshot, instance);
  const fleet = fleetOf(snapshot);
  const found = yield* scan(fleet, request, (body) => withoutItself(snapshot, fleet, instance, body));
  const { host } = instance.status;
  const verdicts = [...found.verdicts].sort(
    (a, b) => Number(b.host === host) - Number(a.host === host) || bestFirst(a, b),
  );
  const page = verdicts.slice(offset, offset + limit);
  const hosts = withoutItself(snapshot, fleet, instance, () => {
    const verdictOn = verdictsOf(request, fleet);
    return page.flatMap(({ slot, host: name }) =>
      fleet.names[slot] === name
        ? explainHost(verdictOn(slot), host, () => outsideHeld(snapshot, name, request.amounts))
        : [],
    );
  });
  const { fit } = found;
  const waits = isWaiting(instance);
  const known = snapshot.instanceById(instance.metadata.id) !== undefined;
  const gang = waits ? gangOutlook(snapshot, instance) : undefined;
  const nearest = gang
    ? yield* nearestOfGang(snapshot, instance, gang)
    : waits && fit === 0
      ? yield* nearestChanges(snapshot, instance, request, found.refused)
      : undefined;
  const own = waitsAtHome(instance) ? fleet.slotOf(host ?? '') : undefined;
  const atHome =
    own !== undefined && found.refused.has(own) ? yield* nearestAtHome(snapshot, instance, request, own) : undefined;
  const made = waits && fit === 0 && !gang ? roomMadeFor(snapshot, instance, request, policy) : undefined;
  return {
    instance: instance.metadata.name,
    project: instance.metadata.project,
    phase: instance.status.phase,
    ...(host === undefined ? {} : { host }),
    summary: summaryOf(snapshot, instance, { request, gang, policy, made }),
    profile: request.profile,
    amounts: { ...request.assigned },
    counts: { hosts: verdicts.length, fit, refused: verdicts.length - fit },
    reasons: [...found.reasons],
    ...(waits && known ? { queue: explainQueue(snapshot, instance, nowMs) } : {}),
    ...(host === undefined ? {} : { placed: explainPlaced(snapshot, instance, verdicts) }),
    ...(made ? { preemption: made } : {}),
    ...(nearest || atHome ? { nearest: nearest ?? atHome ?? [] } : {}),
    hosts,
    ...(offset + limit < verdicts.length ? { continue: String(offset + limit) } : {}),
  };
}

/** Its disk is on its host, and it waits there for room to run. */
function waitsAtHome({ status, spec }: Instance): boolean {
  return status.host !== undefined && status.phase === 'Stopped' && isToBeOn(spec);
}

function isWaiting({ status, spec }: Instance): boolean {
  return status.host === undefined && status.phase === 'Pending' && isToBeOn(spec);
}

/** `heldOutside`: text about the usage of outside consumers, which is added to refusals for insufficient capacity. */
function explainHost(
  { host, refusals, score, scores }: HostVerdict,
  current: string | undefined,
  heldOutside: () => string | undefined,
): HostExplanation {
  const fits = refusals.length === 0;
  const words = ({ plugin, reason }: HostVerdict['refusals'][number], message: string): string => {
    const also = plugin === 'fit' && reason.startsWith('Insufficient') ? heldOutside() : undefined;
    return also === undefined ? message : `${message}; ${also}`;
  };
  return {
    host,
    current: current === host,
    fits,
    refusals: refusals.map((refusal) => ({
      rule: refusal.plugin,
      reason: refusal.reason,
      message: words(refusal, refusal.message()),
    })),
    ...(fits ? { score, scores } : {}),
  };
}

// The summary in one sentence.

/** Reasons that keep a fitting instance from being placed. */
const heldBack: ReadonlySet<string> = new Set(['ConcurrencyLimit', 'CapacityMap']);

function summaryOf(
  snapshot: Snapshot,
  instance: Instance,
  {
    request,
    gang,
    policy,
    made,
  }: {
    readonly request: Request;
    readonly gang: GangOutlook | undefined;
    readonly policy: LimitPolicy | undefined;
    readonly made: Explanation['preemption'];
  },
): string {
  const scheduled = conditionOf(instance.status.conditions, 'Scheduled');
  const running = conditionOf(instance.status.conditions, 'Running');
  if (running && (instance.status.phase === 'Failed' || instance.status.phase === 'Exited')) {
    // The status repeats the reason of a preemption.
    const before = scheduled?.message === running.message ? '' : `; it was ${scheduled?.message ?? 'placed'}`;
    return `${running.reason}: ${running.message}${before}`;
  }
  if (instance.status.host !== undefined) return scheduled?.message ?? `placed on ${instance.status.host}`;
  if (gang) return gangSummary(snapshot, instance, { request, gang });
  const task = taskOf(instance);
  if (task !== undefined) {
    const taken = takeOver(snapshot, instance.metadata.project, task, request);
    return taken.placed ? `fits on ${taken.placement.host}, with the resources of task "${task}"` : taken.message;
  }
  const placement = schedule(snapshot, request);
  if (!placement.placed) {
    const why = whyItWaits(snapshot, request, placement);
    return made ? `fits on ${made.host} ${onceMade(made)}; now: ${why}` : why;
  }
  if (!snapshot.instanceById(instance.metadata.id)) {
    const reached = policy && limitReached(snapshot, limitsOn(snapshot, policy, instance));
    return reached ? `${reached.message}; there is room on ${placement.host}` : `fits on ${placement.host}`;
  }
  return `fits on ${placement.host}${whatHolds(instance)}`;
}

/** In the order of controllers/placement.ts: limits first; an instance with a reservation waits for it. */
function roomMadeFor(
  snapshot: Snapshot,
  instance: Instance,
  request: Request,
  policy: LimitPolicy | undefined,
): Explanation['preemption'] {
  const { status } = instance;
  const held = heldBack.has(conditionOf(status.conditions, 'Scheduled')?.reason ?? '');
  if (held || status.nomination || taskOf(instance) !== undefined) return undefined;
  if (policy && limitReached(snapshot, limitsOn(snapshot, policy, instance))) return undefined;
  const found = preemptionFor(snapshot, instance, request);
  if (!found) return undefined;
  return {
    host: found.host,
    instances: found.victims.map(({ value: { metadata } }) => `${metadata.project}/${metadata.name}`),
  };
}

function onceMade({ instances }: NonNullable<Explanation['preemption']>): string {
  if (instances.length === 0) return 'once the resources being released there are free';
  return `once ${listed(instances)} (of lower priority) ${instances.length === 1 ? 'is' : 'are'} stopped for it`;
}

function whatHolds({ status }: Instance): string {
  const scheduled = conditionOf(status.conditions, 'Scheduled');
  return scheduled && heldBack.has(scheduled.reason) ? `; ${scheduled.message}` : '; about to be placed';
}

/** What blocks the whole gang comes first. */
function gangSummary(
  snapshot: Snapshot,
  instance: Instance,
  { request, gang }: { readonly request: Request; readonly gang: GangOutlook },
): string {
  const { metadata, spec } = instance;
  if (gang.complete && gang.answer.placed) {
    const own = gang.answer.members.find(({ instance: { value } }) => value.metadata.id === metadata.id);
    const known = snapshot.instanceById(metadata.id) !== undefined;
    return `fits on ${own?.placed.host}, with all of gang ${spec.gang?.name}${known ? whatHolds(instance) : ''}`;
  }
  const alone = schedule(snapshot, request);
  const message = !gang.complete ? gang.message : gang.answer.placed ? '' : gang.answer.message;
  if (alone.placed) return `${message}; alone it would fit on ${alone.host}`;
  // For a complete gang the answer already says what refuses a single member.
  return gang.complete ? message : `${message}; it alone: ${summarize(alone)}`;
}

/** For an incomplete gang no change is known to suffice: the missing members may ask for anything. */
function* nearestOfGang(snapshot: Snapshot, instance: Instance, gang: GangOutlook): Steps<NearestChange[] | undefined> {
  if (!gang.complete || gang.answer.placed) return undefined;
  return yield* nearestForGang(snapshot, instance, gang.members);
}

// For a placed instance: why it is there.

const ratedMax = 3;

function explainPlaced(snapshot: Snapshot, instance: Instance, verdicts: readonly Brief[]): PlacedExplanation {
  const { status } = instance;
  const decision = conditionOf(status.conditions, 'Scheduled')?.message ?? `placed on ${status.host}`;
  const then = readPlacedMessage(decision);
  const [own] = verdicts;
  const here = own?.host === status.host ? own : undefined;
  const fitsNow = here?.refusals === 0;
  // Its own host first, the others after it in order.
  const others: Brief[] = [];
  for (const each of verdicts.slice(here ? 1 : 0, 1 + ratedMax)) if (each.refusals === 0) others.push(each);
  const rated = others.slice(0, ratedMax).map(({ host, score }) => ({ host, score }));
  return {
    ...(status.scheduledAtMs === undefined ? {} : { decidedAtMs: status.scheduledAtMs }),
    decision,
    fitsNow,
    ...(then ? { scoreThen: then.score } : {}),
    ...(fitsNow ? { scoreNow: here.score } : {}),
    better: rated.filter(({ host, score }) => isBefore({ host, score }, fitsNow ? here : undefined)),
    runnersUp: rated,
    changes: changesSince(snapshot, instance, verdicts, then),
  };
}

function isBefore(a: { host: string; score: number }, b: { host: string; score: number } | undefined): boolean {
  return !b || a.score > b.score || (a.score === b.score && a.host < b.host);
}

function changesSince(
  snapshot: Snapshot,
  { status }: Instance,
  verdicts: readonly Brief[],
  then: { readonly hosts: number; readonly hostsFit: number | undefined } | undefined,
): string[] {
  const changes: string[] = [];
  const sinceMs = status.scheduledAtMs ?? 0;
  const joined: string[] = [];
  const heard: string[] = [];
  const silent: string[] = [];
  for (const { value } of snapshot.list('host')) {
    const { name, createdAtMs } = value.metadata;
    const ready = conditionOf(value.status.conditions, 'Ready');
    if (createdAtMs > sinceMs) joined.push(name);
    else if (ready && ready.sinceMs > sinceMs) (ready.status === 'True' ? heard : silent).push(name);
  }
  if (then && then.hosts !== verdicts.length)
    changes.push(`there are ${verdicts.length} hosts, there were ${then.hosts}`);
  const fit = verdicts.reduce((count, { refusals }) => count + Number(refusals === 0), 0);
  if (then?.hostsFit !== undefined && then.hostsFit !== fit) changes.push(`${fit} would take it, ${then.hostsFit} did`);
  for (const [names, what] of [
    [joined, 'joined'],
    [heard, 'came back'],
    [silent, 'stopped sending heartbeats'],
  ] as const)
    if (names.length > 0) changes.push(`${listed(names)} ${what}`);
  return changes;
}
