// Explain: for every host, all the rules that refuse an instance, or its score by rule; for one that is placed, why it is there; for one
// that is not, what would change that. The same rules as scheduling.

import type { Explanation, HostExplanation, PlacedExplanation, ReasonExplanation } from '../../api/explanation.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { conditionOf } from '../state/conditions.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { withoutItself } from './explain-trial.ts';
import { type Fleet, fleetOf } from './fleet.ts';
import { type HostVerdict, verdictsOf } from './full-scan.ts';
import { nearestChanges } from './nearest-change.ts';
import { type Request, requestOf } from './request.ts';
import { readPlacedMessage, schedule, summarize } from './schedule.ts';
import type { Slot } from './slot.ts';
import { finish, hostsPerStep, type Steps } from './steps.ts';
import { takeOver, taskOf } from './take-over.ts';
import { listed } from './words.ts';

export interface ExplainOptions {
  /** How many hosts are told of one by one, from the `offset`th on. */
  readonly limit: number;
  readonly offset: number;
}

const examplesMax = 3;

/** All hosts, in one go. */
export function explain(snapshot: Snapshot, instance: Instance, options: Partial<ExplainOptions> = {}): Explanation {
  return finish(explainInSteps(snapshot, instance, { limit: Number.POSITIVE_INFINITY, offset: 0, ...options }));
}

export function* explainInSteps(
  snapshot: Snapshot,
  instance: Instance,
  { limit, offset }: ExplainOptions,
): Steps<Explanation> {
  const request = requestOf(snapshot, instance);
  const fleet = fleetOf(snapshot);
  const found = yield* scan(snapshot, fleet, instance, request);
  const { host } = instance.status;
  found.verdicts.sort((a, b) => compare(a, b, host));
  const page = found.verdicts.slice(offset, offset + limit);
  const hosts = withoutItself(snapshot, fleet, instance, () => {
    const verdictOn = verdictsOf(request, fleet);
    return page.flatMap(({ slot, host: name }) =>
      fleet.names[slot] === name ? explainHost(verdictOn(slot), host) : [],
    );
  });
  const fit = found.verdicts.reduce((count, { refusals }) => count + Number(refusals === 0), 0);
  const waits = isWaiting(instance);
  const nearest = waits && fit === 0 ? yield* nearestChanges(snapshot, instance, request, found.refused) : undefined;
  return {
    instance: instance.metadata.name,
    project: instance.metadata.project,
    phase: instance.status.phase,
    ...(host === undefined ? {} : { host }),
    summary: summaryOf(snapshot, instance, request),
    profile: request.profile,
    amounts: { ...request.amounts },
    counts: { hosts: found.verdicts.length, fit, refused: found.verdicts.length - fit },
    reasons: [...found.reasons.values()].sort((a, b) => b.hosts - a.hosts || (a.reason < b.reason ? -1 : 1)),
    ...(host === undefined ? {} : { placed: explainPlaced(snapshot, instance, found.verdicts) }),
    ...(nearest ? { nearest } : {}),
    hosts,
    ...(offset + limit < found.verdicts.length ? { continue: String(offset + limit) } : {}),
  };
}

function isWaiting({ status, spec }: Instance): boolean {
  return status.host === undefined && status.phase === 'Pending' && spec.powerState === 'running';
}

// Looking at all hosts.

interface Brief {
  readonly slot: Slot;
  readonly host: string;
  readonly refusals: number;
  readonly score: number;
}

interface Scan {
  readonly verdicts: Brief[];
  /** By reason and rule. */
  readonly reasons: Map<string, Mutable<ReasonExplanation>>;
  /** Of refused hosts: which rules refuse. */
  readonly refused: Map<Slot, readonly string[]>;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function* scan(snapshot: Snapshot, fleet: Fleet, instance: Instance, request: Request): Steps<Scan> {
  const found: Scan = { verdicts: [], reasons: new Map(), refused: new Map() };
  for (let from = 0; from < fleet.length; from += hostsPerStep) {
    if (from > 0) yield;
    withoutItself(snapshot, fleet, instance, () => {
      const verdictOn = verdictsOf(request, fleet);
      const end = Math.min(fleet.length, from + hostsPerStep);
      for (let slot = from; slot < end; slot++) if (fleet.hosts[slot]) note(found, verdictOn(slot));
    });
  }
  return found;
}

function note({ verdicts, reasons, refused }: Scan, { slot, host, refusals, score }: HostVerdict): void {
  verdicts.push({ slot, host, refusals: refusals.length, score });
  if (refusals.length === 0) return;
  refused.set(
    slot,
    refusals.map(({ plugin }) => plugin),
  );
  for (const { plugin, reason, message } of refusals) {
    const key = `${plugin} ${reason}`;
    let known = reasons.get(key);
    if (!known) reasons.set(key, (known = { reason, rule: plugin, hosts: 0, alone: 0, examples: [] }));
    known.hosts += 1;
    if (refusals.length === 1) known.alone += 1;
    if (known.examples.length < examplesMax) known.examples.push({ host, message: message() });
  }
}

/** Its own host first, then those that fit, the best first, then the others by name. */
function compare(a: Brief, b: Brief, current: string | undefined): number {
  return (
    Number(b.host === current) - Number(a.host === current) ||
    Number(a.refusals > 0) - Number(b.refusals > 0) ||
    b.score - a.score ||
    (a.host < b.host ? -1 : 1)
  );
}

function explainHost({ host, refusals, score, scores }: HostVerdict, current: string | undefined): HostExplanation {
  const fits = refusals.length === 0;
  return {
    host,
    current: current === host,
    fits,
    refusals: refusals.map(({ plugin, reason, message }) => ({ rule: plugin, reason, message: message() })),
    ...(fits ? { score, scores } : {}),
  };
}

// In one sentence.

function summaryOf(snapshot: Snapshot, instance: Instance, request: Request): string {
  const scheduled = conditionOf(instance.status.conditions, 'Scheduled');
  const running = conditionOf(instance.status.conditions, 'Running');
  if (running && (instance.status.phase === 'Failed' || instance.status.phase === 'Exited')) {
    return `${running.reason}: ${running.message}; it was ${scheduled?.message ?? 'placed'}`;
  }
  if (instance.status.host !== undefined) return scheduled?.message ?? `placed on ${instance.status.host}`;
  const task = taskOf(instance);
  if (task !== undefined) {
    const taken = takeOver(snapshot, instance.metadata.project, task, request);
    return taken.placed ? `fits on ${taken.placement.host}, in the room of task "${task}"` : taken.message;
  }
  const placement = schedule(snapshot, request);
  return placement.placed ? `fits on ${placement.host}; about to be placed` : summarize(placement);
}

// Of a placed one: why here.

const ratedMax = 3;

function explainPlaced(snapshot: Snapshot, instance: Instance, verdicts: readonly Brief[]): PlacedExplanation {
  const { status } = instance;
  const decision = conditionOf(status.conditions, 'Scheduled')?.message ?? `placed on ${status.host}`;
  const then = readPlacedMessage(decision);
  const [own] = verdicts;
  const here = own?.host === status.host ? own : undefined;
  const fitsNow = here?.refusals === 0;
  // Its own host stands first, the others after it in order.
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
  then: { readonly hosts: number; readonly hostsFit: number } | undefined,
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
  if (then && then.hostsFit !== fit) changes.push(`${fit} would take it, ${then.hostsFit} did`);
  for (const [names, what] of [
    [joined, 'joined'],
    [heard, 'came back'],
    [silent, 'fell silent'],
  ] as const)
    if (names.length > 0) changes.push(`${listed(names)} ${what}`);
  return changes;
}
