// Nearest ends: the fewest instances whose end on one host would free enough room. Tried one by one, then together.

import type { NearestChange } from '../../api/explanation.ts';
import { mostOf } from '../ledger/most.ts';
import type { Allocation } from '../state/records.ts';
import type { Fleet } from '../scheduler/fleet.ts';
import { attempt, consumerWords, fitter, leave, nameOf, placesOf, type Question } from './nearest-question.ts';
import { groupPlugins } from '../scheduler/registry.ts';
import type { Request } from '../scheduler/request.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import { hostsPerStep, type Steps } from '../scheduler/steps.ts';
import { judge, prepareRules } from '../scheduler/engine/verdicts.ts';
import { listed } from '../scheduler/words.ts';

/**
 * Number of hosts for which ends are tried: those that lack the least, and as many of those where neighbours do not
 * refuse.
 */
const hostsWaitedForMax = 16;
const endsTriedMax = 256;

export interface Ends {
  readonly slot: Slot;
  readonly ends: readonly Allocation[];
}

/** `slots`: hosts that would take it with more room or other neighbours. */
export function* awaitEnds(question: Question, slots: readonly Slot[]): Steps<NearestChange[]> {
  const best = yield* fewestEnds(question, slots);
  if (!best) return [];
  const { snapshot, fleet } = question;
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
      instances: instancesIn(ends),
    },
  ];
}

/** As project/name. Outside consumers have no such names. */
export function instancesIn(ends: readonly Pick<Allocation, 'consumer'>[]): string[] {
  return ends.flatMap(({ consumer: { kind, project, name } }) => (kind === 'outside' ? [] : [`${project}/${name}`]));
}

export function* fewestEnds(question: Question, slots: readonly Slot[]): Steps<Ends | undefined> {
  const { fleet, request } = question;
  const lacking: { readonly slot: Slot; readonly lacks: number; readonly kept: boolean }[] = [];
  for (let from = 0; from < slots.length; from += hostsPerStep) {
    yield;
    attempt(question, () => {
      const neighbours = prepareRules(groupPlugins, request, fleet);
      for (const slot of slots.slice(from, from + hostsPerStep)) {
        const lacks = lackOf(fleet, request, slot);
        if (Number.isFinite(lacks)) lacking.push({ slot, lacks, kept: judge(neighbours, slot) < 0 });
      }
    });
  }
  lacking.sort((a, b) => a.lacks - b.lacks || (nameOf(fleet, a.slot) < nameOf(fleet, b.slot) ? -1 : 1));
  const free = lacking.filter(({ kept }) => !kept).slice(0, hostsWaitedForMax);
  let best: Ends | undefined;
  for (const { slot } of new Set([...free, ...lacking.slice(0, hostsWaitedForMax)])) {
    yield;
    const ends = endsFor(question, slot);
    if (ends && (!best || ends.length < best.ends.length)) best = { slot, ends };
    if (best?.ends.length === 1) break;
  }
  return best;
}

/** The share of the request that the host lacks; infinite when even the empty host lacks something. */
function lackOf(fleet: Fleet, { amounts }: Request, slot: Slot): number {
  let lacks = 0;
  for (const [resourceClass, amount] of Object.entries(amounts)) {
    if (amount === 0) continue;
    if ((fleet.column(resourceClass)?.capacity(slot) ?? 0) < amount) return Number.POSITIVE_INFINITY;
    lacks += Math.max(0, 1 - mostOf(fleet.tree(slot), resourceClass, amount) / amount);
  }
  return lacks;
}

/**
 * One holder whose end is enough; else the largest holders until it is, without those not needed. Null: even all are
 * not enough.
 */
function endsFor(question: Question, slot: Slot): readonly Allocation[] | null {
  const { snapshot, fleet, instance, request, spared } = question;
  const host = nameOf(fleet, slot);
  const others = [...snapshot.allocationsOnHost(host)]
    .map(({ value }) => value)
    .filter(({ consumer }) => consumer.id !== instance.metadata.id && !spared?.has(consumer.id));
  return attempt(question, () => {
    const short = Object.entries(request.amounts).filter(
      ([name, amount]) => mostOf(fleet.tree(slot), name, amount) < amount,
    );
    const help = (allocation: Allocation): number =>
      short.reduce((sum, [name, amount]) => sum + Math.min(1, heldOf(allocation, name) / amount), 0);
    others.sort((a, b) => help(b) - help(a) || (a.consumer.name < b.consumer.name ? -1 : 1));
    const tried = others.slice(0, endsTriedMax);
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

function heldOf({ amounts }: Allocation, resourceClass: string): number {
  return Object.values(amounts).reduce((sum, held) => sum + (held[resourceClass] ?? 0), 0);
}
