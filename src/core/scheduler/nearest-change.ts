// Nearest change: what would make an instance fit that fits nowhere. Every answer was tried: the change is laid over the fleet or the
// request within a trial, and the rules are asked again. Nothing here knows what a rule will say.
//
// Costs, so that the nearest can be told: asking less 1 and 10 for all that is given up · resuming a host 2 · a host that comes back 3 ·
// a taint that is removed 3 · a wish that is dropped 4 · waiting 2 and 2 for each end · another host 20, each.

import type { NearestChange } from '../../api/explanation.ts';
import type { Host } from '../../api/resources/host.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { mostOf } from '../ledger/most.ts';
import { gangKeyOf, gangsOf, largestFirst } from '../queue/gangs.ts';
import { withConditions } from '../state/conditions.ts';
import type { Allocation } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { withoutItself } from './explain-trial.ts';
import { hold } from './count-more.ts';
import { type Fleet, fleetOf } from './fleet.ts';
import { belongingOf, placeOf } from './belonging.ts';
import { plugins, roomPlugins, groupPlugins } from './registry.ts';
import { type Request, requestOf } from './request.ts';
import { engineOf, placementAt } from './schedule.ts';
import type { Slot } from './slot.ts';
import { hostsPerStep, type Steps } from './steps.ts';
import { amountWords, listed } from './words.ts';
import { judge, prepareRules } from './verdicts.ts';
import { wishesOf } from './wishes.ts';

const changesMax = 5;
const hostsNamedMax = 5;
/** Of one kind of change to hosts so many are tried. */
const hostsTriedMax = 256;
/** Ends of instances are tried on so many hosts, those that lack least. */
const hostsWaitedForMax = 32;
const endsTriedMax = 256;
/** Kinds of hosts that are tried as one more. */
const hostKindsMax = 8;

/** `refused`: of each refused host, which rules refuse it. */
export function* nearestChanges(
  snapshot: Snapshot,
  instance: Instance,
  request: Request,
  refused: ReadonlyMap<Slot, readonly string[]>,
): Steps<NearestChange[]> {
  const question: Question = { snapshot, fleet: fleetOf(snapshot), instance, request, refused };
  const changes: NearestChange[] = [];
  for (const kind of [askLess, askFewer, changeHosts, dropWishes, awaitEnds, addHosts]) {
    yield;
    changes.push(...(yield* kind(question)));
  }
  return changes.sort((a, b) => a.cost - b.cost || (a.message < b.message ? -1 : 1)).slice(0, changesMax);
}

/** Of one whose disk keeps it on a host: whose end there makes room. */
export function nearestAtHome(
  snapshot: Snapshot,
  instance: Instance,
  request: Request,
  slot: Slot,
): Steps<NearestChange[]> {
  const refused = new Map([[slot, [...roomRules]]]);
  return awaitEnds({ snapshot, fleet: fleetOf(snapshot), instance, request, refused });
}

interface Question {
  readonly snapshot: Snapshot;
  readonly fleet: Fleet;
  readonly instance: Instance;
  readonly request: Request;
  readonly refused: ReadonlyMap<Slot, readonly string[]>;
}

function attempt<T>({ snapshot, fleet, instance }: Question, body: () => T): T {
  return withoutItself(snapshot, fleet, instance, body);
}

/** Whether all rules let the request onto a host, as the trial has things now. */
function fitter(fleet: Fleet, request: Request): (slot: Slot) => boolean {
  const rules = prepareRules(plugins, request, fleet);
  return (slot) => fleet.hosts[slot] !== undefined && judge(rules, slot) >= 0;
}

/** Hosts that only these rules refuse. */
function refusedOnlyBy({ refused }: Question, names: ReadonlySet<string>): Slot[] {
  const found: Slot[] = [];
  for (const [slot, rules] of refused) if (rules.every((rule) => names.has(rule))) found.push(slot);
  return found;
}

const roomRules: ReadonlySet<string> = new Set(roomPlugins.map(({ name }) => name));
const changingRules: ReadonlySet<string> = new Set([...roomRules, ...groupPlugins.map(({ name }) => name)]);

// Asking less: of each set of classes that some host lacks, the host where least is given up.

interface Less {
  readonly ask: Amounts;
  readonly gaveUp: number;
  readonly slots: Slot[];
}

function* askLess(question: Question): Steps<NearestChange[]> {
  const { fleet, request } = question;
  const best = new Map<string, Less>();
  const slots = refusedOnlyBy(question, roomRules);
  for (let from = 0; from < slots.length; from += hostsPerStep) {
    if (from > 0) yield;
    attempt(question, () => {
      for (const slot of slots.slice(from, from + hostsPerStep)) {
        const less = lessFor(fleet, request, slot);
        if (!less) continue;
        const known = best.get(less.classes);
        if (known && known.gaveUp < less.gaveUp) continue;
        if (known?.gaveUp === less.gaveUp) {
          if (sameAmounts(known.ask, less.ask)) known.slots.push(slot);
          continue;
        }
        if (fitter(fleet, { ...request, amounts: less.ask })(slot))
          best.set(less.classes, { ask: less.ask, gaveUp: less.gaveUp, slots: [slot] });
      }
    });
  }
  return [...best.values()].map(({ ask, gaveUp, slots: where }) => {
    const reduced = Object.keys(ask).filter((name) => ask[name] !== request.amounts[name]);
    const less = reduced.map((name) => amountWords(name, (request.amounts[name] ?? 0) - (ask[name] ?? 0)));
    const asked = reduced.map((name) => amountWords(name, ask[name] ?? 0));
    return {
      change: 'AskLess' as const,
      message: `ask ${less.join(' and ')} less: ${asked.join(' and ')} fit`,
      ...placesOf(fleet, where),
      cost: 1 + 10 * gaveUp,
      ask,
    };
  });
}

/** Fewer GPUs, or fewer cells: of each kind the most that some host can give. */
function* askFewer(question: Question): Steps<NearestChange[]> {
  const { fleet, request } = question;
  const found: NearestChange[] = [];
  const slots = request.portions.length === 0 ? [] : refusedOnlyBy(question, roomRules).slice(0, hostsTriedMax);
  for (const portion of request.portions) {
    for (let count = portion.count - 1; count > 0; count--) {
      yield;
      const portions = request.portions.map((each) => (each === portion ? { ...portion, count } : each));
      const where = attempt(question, () => slots.filter(fitter(fleet, { ...request, portions })));
      if (where.length === 0) continue;
      const [name = ''] = Object.keys(portion.amounts);
      found.push({
        change: 'AskLess',
        message: `ask for ${count} instead of ${portion.count} that give ${amountWords(name, portion.amounts[name] ?? 0)} each`,
        ...placesOf(fleet, where),
        cost: 1 + (10 * (portion.count - count)) / portion.count,
      });
      break;
    }
  }
  return found;
}

/** As much of each class as the host can give, at most what is asked; null where something cannot be given at all. */
function lessFor(fleet: Fleet, { amounts }: Request, slot: Slot) {
  const ask: Record<string, number> = {};
  const classes: string[] = [];
  let gaveUp = 0;
  for (const [resourceClass, amount] of Object.entries(amounts)) {
    const most = mostOf(fleet.tree(slot), resourceClass, amount);
    if (amount > 0 && most <= 0) return null;
    ask[resourceClass] = most;
    if (most === amount) continue;
    classes.push(resourceClass);
    gaveUp += 1 - most / amount;
  }
  return classes.length === 0 ? null : { ask, gaveUp, classes: classes.join() };
}

function sameAmounts(a: Amounts, b: Amounts): boolean {
  return Object.keys(a).every((name) => a[name] === b[name]);
}

// Hosts that could be other than they are.

interface HostStep {
  readonly change: 'ResumeHost' | 'HostBack' | 'RemoveTaint';
  readonly cost: number;
  /** For one host, and for several. */
  readonly words: (hosts: string) => string;
  /** The host after it; null where it is so already. */
  readonly apply: (host: Host) => Host | null;
}

const hostSteps: readonly HostStep[] = [
  {
    change: 'ResumeHost',
    cost: 2,
    words: (hosts) => `resume ${hosts}`,
    apply: (host) => (host.spec.paused ? { ...host, spec: { ...host.spec, paused: false } } : null),
  },
  {
    change: 'HostBack',
    cost: 3,
    words: (hosts) => `${hosts} comes back`,
    apply(host) {
      const { status } = host;
      if (status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True')) return null;
      const ready = { type: 'Ready', status: 'True', reason: 'Supposed', message: 'as if it were heard' } as const;
      return { ...host, status: { ...status, conditions: withConditions(status.conditions, [ready], 0) } };
    },
  },
  {
    change: 'RemoveTaint',
    cost: 3,
    words: (hosts) => `remove the taints of ${hosts}`,
    apply(host) {
      const { taints, ...spec } = host.spec;
      return taints && taints.length > 0 ? { ...host, spec } : null;
    },
  },
];

/** Each step alone, and all that a host is in need of together. */
function* changeHosts(question: Question): Steps<NearestChange[]> {
  const { fleet, refused } = question;
  const singles = hostSteps.map((step) => [step]);
  const found: NearestChange[] = [];
  const mended = new Set<Slot>();
  for (const steps of [...singles, hostSteps]) {
    yield;
    const candidates: { readonly slot: Slot; readonly host: Host; readonly done: readonly HostStep[] }[] = [];
    for (const slot of refused.keys()) {
      if (candidates.length === hostsTriedMax) break;
      const before = fleet.hosts[slot];
      if (!before || (steps.length > 1 && mended.has(slot))) continue;
      let host = before;
      const done: HostStep[] = [];
      for (const step of steps) {
        const after = step.apply(host);
        if (!after) continue;
        host = after;
        done.push(step);
      }
      if (done.length === 0 || (steps.length > 1 && done.length < 2)) continue;
      candidates.push({ slot, host, done });
    }
    const byDone = new Map<string, { readonly done: readonly HostStep[]; readonly slots: Slot[] }>();
    attempt(question, () => {
      for (const { slot, host } of candidates) fleet.imagine(slot, host);
      const fits = fitter(fleet, question.request);
      for (const { slot, done } of candidates) {
        if (!fits(slot)) continue;
        mended.add(slot);
        const key = done.map(({ change }) => change).join();
        const known = byDone.get(key);
        if (known) known.slots.push(slot);
        else byDone.set(key, { done, slots: [slot] });
      }
    });
    for (const { done, slots } of byDone.values()) {
      const [only] = done;
      const hosts = hostWords(fleet, slots);
      found.push({
        change: only && done.length === 1 ? only.change : 'Several',
        message: done.map(({ words }, index) => words(index === 0 ? hosts : 'it')).join(', and '),
        ...placesOf(fleet, slots),
        cost: done.reduce((sum, { cost }) => sum + cost, 0),
      });
    }
  }
  return found;
}

// Wishes that could be dropped.

function* dropWishes(question: Question): Steps<NearestChange[]> {
  const { fleet, instance, request, refused } = question;
  const found: NearestChange[] = [];
  const slots = [...refused.keys()];
  for (const { words, without } of wishesOf(request, instance.spec.placement.driver !== undefined)) {
    const where: Slot[] = [];
    for (let from = 0; from < slots.length && where.length < hostsNamedMax; from += hostsPerStep) {
      yield;
      attempt(question, () => {
        const fits = fitter(fleet, without);
        for (const slot of slots.slice(from, from + hostsPerStep)) if (fits(slot)) where.push(slot);
      });
    }
    if (where.length === 0) continue;
    found.push({ change: 'DropRule', message: `drop ${words}`, ...placesOf(fleet, where), cost: 4 });
  }
  return found;
}

// Waiting for others to end.

function* awaitEnds(question: Question): Steps<NearestChange[]> {
  const { snapshot, fleet, request } = question;
  const lacking: { readonly slot: Slot; readonly lacks: number }[] = [];
  const slots = refusedOnlyBy(question, changingRules);
  for (let from = 0; from < slots.length; from += hostsPerStep) {
    yield;
    attempt(question, () => {
      for (const slot of slots.slice(from, from + hostsPerStep)) {
        const lacks = lackOf(fleet, request, slot);
        if (Number.isFinite(lacks)) lacking.push({ slot, lacks });
      }
    });
  }
  lacking.sort((a, b) => a.lacks - b.lacks || (nameOf(fleet, a.slot) < nameOf(fleet, b.slot) ? -1 : 1));
  let best: { readonly slot: Slot; readonly ends: readonly Allocation[] } | undefined;
  for (const { slot } of lacking.slice(0, hostsWaitedForMax)) {
    yield;
    const ends = endsFor(question, slot);
    if (ends && (!best || ends.length < best.ends.length)) best = { slot, ends };
    if (best?.ends.length === 1) break;
  }
  if (!best) return [];
  const { slot, ends } = best;
  const names = ends.map(({ consumer }) => consumerWords(snapshot, consumer));
  return [
    {
      change: 'InstancesEnd',
      message: `when ${names.length === 1 ? `${names[0]} ends` : `${names.length} end`} on ${nameOf(fleet, slot)}${
        names.length === 1 ? '' : `: ${listed(names, 8)}`
      }`,
      ...placesOf(fleet, [slot]),
      cost: 2 + 2 * ends.length,
      instances: ends.map(({ consumer }) => `${consumer.project}/${consumer.name}`),
    },
  ];
}

/** What part of the request the host lacks in all; endless where it could not give something even when it is empty. */
function lackOf(fleet: Fleet, { amounts }: Request, slot: Slot): number {
  let lacks = 0;
  for (const [resourceClass, amount] of Object.entries(amounts)) {
    if (amount === 0) continue;
    if ((fleet.column(resourceClass)?.capacity[slot] ?? 0) < amount) return Number.POSITIVE_INFINITY;
    lacks += Math.max(0, 1 - mostOf(fleet.tree(slot), resourceClass, amount) / amount);
  }
  return lacks;
}

/** One whose end is enough; else the largest holders until it is, less those that were not needed. Null: even all are not enough. */
function endsFor(question: Question, slot: Slot): readonly Allocation[] | null {
  const { snapshot, fleet, instance, request } = question;
  const host = nameOf(fleet, slot);
  const others = [...snapshot.allocationsOnHost(host)]
    .map(({ value }) => value)
    .filter(({ consumer }) => consumer.id !== instance.metadata.id);
  const short = Object.entries(request.amounts).filter(
    ([name, amount]) => mostOf(fleet.tree(slot), name, amount) < amount,
  );
  const help = (allocation: Allocation): number =>
    short.reduce((sum, [name, amount]) => sum + Math.min(1, heldOf(allocation, name) / amount), 0);
  others.sort((a, b) => help(b) - help(a) || (a.consumer.name < b.consumer.name ? -1 : 1));
  const tried = others.slice(0, endsTriedMax);
  return attempt(question, () => {
    const fits = (): boolean => fitter(fleet, request)(slot);
    for (const one of tried) {
      leave(question, slot, one, 1);
      const enough = fits();
      leave(question, slot, one, -1);
      if (enough) return [one];
    }
    const gone: Allocation[] = [];
    for (const one of tried) {
      leave(question, slot, one, 1);
      gone.push(one);
      if (fits()) break;
    }
    if (!fits()) return null;
    return gone.filter((one) => {
      leave(question, slot, one, -1);
      if (fits()) return false;
      leave(question, slot, one, 1);
      return true;
    });
  });
}

/** Within a trial: a consumer leaves the host, or (sign -1) is there again. */
function leave(
  { snapshot, fleet }: Question,
  slot: Slot,
  { amounts, ports, consumer }: Allocation,
  sign: 1 | -1,
): void {
  if (sign > 0) fleet.giveBack(slot, amounts, ports);
  else fleet.hold(slot, amounts, ports);
  const other = snapshot.instanceById(consumer.id)?.value;
  if (other && placeOf(other) === nameOf(fleet, slot) && other.status.incarnation === consumer.incarnation)
    fleet.groups.try(slot, belongingOf(other), sign > 0 ? -1 : 1);
}

function heldOf({ amounts }: Allocation, resourceClass: string): number {
  return Object.values(amounts).reduce((sum, held) => sum + (held[resourceClass] ?? 0), 0);
}

function consumerWords(snapshot: Snapshot, { kind, id, project, name }: Allocation['consumer']): string {
  if (kind === 'task') return `task ${project}/${name}`;
  const instance = snapshot.instanceById(id)?.value;
  return instance ? `instance ${project}/${name}` : `what is left of instance ${project}/${name}`;
}

// More hosts of a kind that is there.

/** Larger gangs are not tried. */
const gangTriedMax = 128;

/** Of one that would fit alone, while its gang does not: how many more hosts take all that wait of it. Nothing where they fit as it is. */
export function* nearestForGang(
  snapshot: Snapshot,
  instance: Instance,
  request: Request,
  refused: ReadonlyMap<Slot, readonly string[]>,
): Steps<NearestChange[]> {
  const fleet = fleetOf(snapshot);
  const all = new Map<Slot, readonly string[]>();
  for (let slot = 0; slot < fleet.length; slot++) if (fleet.hosts[slot]) all.set(slot, refused.get(slot) ?? []);
  return yield* addHosts({ snapshot, fleet, instance, request, refused: all });
}

interface Seated {
  readonly slot: Slot;
  readonly request: Request;
  readonly held: Allocation['amounts'];
}

/** For a gang as many as its members need that find no place together with the others. */
function* addHosts(question: Question): Steps<NearestChange[]> {
  const { fleet, instance } = question;
  const members = membersOf(question);
  if (members.length > gangTriedMax) return [];
  yield;
  const { seated, left } = seat(question, members);
  if (left.length === 0) return [];
  let fewest: { readonly slot: Slot; readonly count: number } | undefined;
  for (const slot of yield* hostKinds(question)) {
    const count = yield* countNew(question, slot, { seated, left, max: (fewest?.count ?? left.length + 1) - 1 });
    if (count !== null) fewest = { slot, count };
  }
  if (!fewest) return [];
  const { slot, count } = fewest;
  const room = ['VCPU', 'MEMORY_MB'].map((name) => amountWords(name, fleet.column(name)?.capacity[slot] ?? 0));
  const more = count === 1 ? 'one more host' : `${count} more hosts`;
  const { gang } = instance.spec;
  const whom = gang && members.length > 1 ? `, for all of gang ${gang.name}` : '';
  return [
    {
      change: 'AddHost',
      message: `${more} like ${nameOf(fleet, slot)} (${room.join(', ')})${whom}`,
      ...placesOf(fleet, [slot]),
      cost: 20 * count,
    },
  ];
}

/** Those of its gang that wait, the largest first; or it alone, while some of them are missing. */
function membersOf({ snapshot, instance, request }: Question): readonly Request[] {
  const { gang } = instance.spec;
  if (!gang) return [request];
  const living = gangsOf(snapshot).living(gangKeyOf(instance) ?? '');
  if (living.length < gang.size) return [request];
  const waiting = living.filter(({ value }) => value.status.host === undefined);
  const members = waiting.map((each) => ({ instance: each, request: requestOf(snapshot, each.value) }));
  return largestFirst(members).map((member) => member.request);
}

/** Who of them finds a place on the hosts that there are, one after the other. */
function seat(
  question: Question,
  members: readonly Request[],
): { seated: readonly Seated[]; left: readonly Request[] } {
  const { snapshot, fleet } = question;
  const engine = engineOf(snapshot);
  return attempt(question, () => {
    const seated: Seated[] = [];
    const left: Request[] = [];
    for (const request of members) {
      const choice = engine.choose(request);
      if (!choice) {
        left.push(request);
        continue;
      }
      const { held } = placementAt(fleet, request, choice);
      hold(fleet, request, choice.slot, held, 1);
      seated.push({ slot: choice.slot, request, held });
    }
    return { seated, left };
  });
}

/** How many hosts like this one take them all, `max` at most; null: more, or they never would. */
function* countNew(
  question: Question,
  slot: Slot,
  {
    seated,
    left,
    max,
  }: { readonly seated: readonly Seated[]; readonly left: readonly Request[]; readonly max: number },
): Steps<number | null> {
  let rest = left;
  for (let count = 1; count <= max; count++) {
    yield;
    const over = fillNew(question, slot, { seated, rest });
    if (over.length === 0) return count;
    if (over.length === rest.length) return null;
    rest = over;
  }
  return null;
}

/** A new host is like this one with nothing on it. Answers who of `rest` finds no place there. */
function fillNew(
  question: Question,
  slot: Slot,
  { seated, rest }: { readonly seated: readonly Seated[]; readonly rest: readonly Request[] },
): readonly Request[] {
  const { snapshot, fleet, instance } = question;
  return attempt(question, () => {
    for (const { value } of snapshot.allocationsOnHost(nameOf(fleet, slot)))
      if (value.consumer.id !== instance.metadata.id) leave(question, slot, value, 1);
    for (const each of seated) if (each.slot !== slot) hold(fleet, each.request, each.slot, each.held, 1);
    return rest.filter((request) => {
      if (!fitter(fleet, request)(slot)) return true;
      const { held } = placementAt(fleet, request, { slot, score: 0, fitCount: 1 });
      hold(fleet, request, slot, held, 1);
      return false;
    });
  });
}

/** One of each kind of host that is full, or where neighbours are in the way. */
function* hostKinds(question: Question): Steps<Iterable<Slot>> {
  const { fleet } = question;
  const kinds = new Map<string, Slot>();
  for (const [index, slot] of refusedOnlyBy(question, changingRules).entries()) {
    if (index % hostsPerStep === 0) yield;
    const kind = fleet
      .tree(slot)
      .map(({ provider }) => JSON.stringify([provider.inventories, provider.traits]))
      .join();
    if (!kinds.has(kind) && kinds.size < hostKindsMax) kinds.set(kind, slot);
  }
  return kinds.values();
}

// Words.

function nameOf(fleet: Fleet, slot: Slot): string {
  return fleet.names[slot] ?? '';
}

function hostWords(fleet: Fleet, slots: readonly Slot[]): string {
  const names = slots.map((slot) => nameOf(fleet, slot));
  return names.length === 1 ? `host ${names[0]}` : `one of ${names.length} hosts (${listed(names)})`;
}

function placesOf(fleet: Fleet, slots: readonly Slot[]): { hosts: string[]; hostCount: number } {
  const names = slots.map((slot) => nameOf(fleet, slot)).sort();
  return { hosts: names.slice(0, hostsNamedMax), hostCount: names.length };
}
