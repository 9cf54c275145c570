// Nearest change: what would make an instance fit that fits nowhere. Every answer was tried: the change is applied to the fleet or the
// request in a trial, and the rules are evaluated again. This file does not predict the verdict of any rule.
//
// Costs, which order the answers: a smaller request 1, plus up to 10 for what is given up · resuming a host 2 · a host that reconnects 3 ·
// removing a taint 3 · dropping a requirement 4 · waiting 2, plus 2 per ended instance · each additional host 20.

import type { NearestChange } from '../../api/explanation.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { mostOf } from '../ledger/most.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type Fleet, fleetOf } from '../scheduler/fleet.ts';
import { awaitEnds } from './nearest-ends.ts';
import { changedHosts, stepSets, stepsTold } from './nearest-host-steps.ts';
import { addHosts } from './nearest-hosts.ts';
import {
  attempt,
  fitter,
  hostsNamedMax,
  hostsTriedMax,
  openHosts,
  placesOf,
  type Question,
} from './nearest-question.ts';
import { roomPlugins } from '../scheduler/registry.ts';
import type { Request } from '../scheduler/request.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import { hostsPerStep, type Steps } from '../scheduler/steps.ts';
import { wishesOf } from './wishes.ts';
import { amountWords } from '../scheduler/words.ts';

const changesMax = 5;

/** `refused`: for each refused host, the rules that refuse it. */
export function* nearestChanges(
  snapshot: Snapshot,
  instance: Instance,
  request: Request,
  refused: ReadonlyMap<Slot, readonly string[]>,
): Steps<NearestChange[]> {
  const question: Refused = { snapshot, fleet: fleetOf(snapshot), instance, request, refused };
  const changes: NearestChange[] = [];
  for (const kind of [askLess, askFewer, changeHosts, dropWishes]) {
    yield;
    changes.push(...(yield* kind(question)));
  }
  const open = yield* openHosts(question);
  changes.push(...(yield* awaitEnds(question, open)), ...(yield* addHosts(question, [request])));
  return nearestFirst(changes);
}

export function nearestFirst(changes: readonly NearestChange[]): NearestChange[] {
  return changes.toSorted((a, b) => a.cost - b.cost || (a.message < b.message ? -1 : 1)).slice(0, changesMax);
}

/** For an instance bound to a host by its disk: which ends of instances there would free room. */
export function nearestAtHome(
  snapshot: Snapshot,
  instance: Instance,
  request: Request,
  slot: Slot,
): Steps<NearestChange[]> {
  return awaitEnds({ snapshot, fleet: fleetOf(snapshot), instance, request }, [slot]);
}

interface Refused extends Question {
  readonly refused: ReadonlyMap<Slot, readonly string[]>;
}

/** Hosts refused by these rules only. */
function refusedOnlyBy({ refused }: Refused, names: ReadonlySet<string>): Slot[] {
  const found: Slot[] = [];
  for (const [slot, rules] of refused) if (rules.every((rule) => names.has(rule))) found.push(slot);
  return found;
}

const roomRules: ReadonlySet<string> = new Set(roomPlugins.map(({ name }) => name));

// Smaller requests: for each set of classes that some host lacks, the host where the least is given up.

interface Less {
  readonly ask: Amounts;
  readonly gaveUp: number;
  readonly slots: Slot[];
}

function* askLess(question: Refused): Steps<NearestChange[]> {
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
      message: `request ${asked.join(' and ')} (${less.join(' and ')} less)`,
      ...placesOf(fleet, where),
      cost: 1 + 10 * gaveUp,
      ask,
    };
  });
}

/** Fewer GPUs or cells: for each kind the most that some host can give. */
function* askFewer(question: Refused): Steps<NearestChange[]> {
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

/**
 * As much of each class as the host can give, at most the requested amount; null where the host can give nothing of a
 * class.
 */
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

// Changes of hosts.

function* changeHosts(question: Refused): Steps<NearestChange[]> {
  const { fleet, refused } = question;
  const found: NearestChange[] = [];
  const mended = new Set<Slot>();
  for (const steps of stepSets) {
    yield;
    const slots = steps.length === 1 ? refused.keys() : [...refused.keys()].filter((slot) => !mended.has(slot));
    const candidates = changedHosts(fleet, slots, steps);
    const enough = attempt(question, () => {
      for (const { slot, host } of candidates) fleet.imagine(slot, host);
      const fits = fitter(fleet, question.request);
      return candidates.filter(({ slot }) => fits(slot));
    });
    for (const { slot } of enough) mended.add(slot);
    found.push(...stepsTold(fleet, enough));
  }
  return found;
}

// Requirements that could be dropped.

function* dropWishes(question: Refused): Steps<NearestChange[]> {
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
