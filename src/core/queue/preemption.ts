// Preemption: which instances of lower priority must be stopped on which host so that a request fits there: as few as
// possible; of those the lowest priorities; of those the youngest. Never an exclusive instance or one of a gang, and
// never more than leave their project its guarantee.

import type { Instance } from '../../api/resources/instance.ts';
import { belongingOf } from '../scheduler/neighbours/belonging.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { verdictsOf } from '../scheduler/engine/full-scan.ts';
import type { Request } from '../scheduler/request.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import { keys } from '../state/keys.ts';
import type { Allocation } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { queueOf } from './queue.ts';

export interface Preemption {
  readonly host: string;
  /** Empty: room is freed there without stopping an instance. */
  readonly victims: readonly Entry<Instance>[];
}

interface Guest {
  readonly instance: Entry<Instance>;
  readonly allocation: Allocation;
}

/** Trials per decision, some 50 ms; beyond it the answer is valid, but may not be the best. */
const trialsMax = 4_000;

/**
 * The preemption for an instance that fits on no host, if it allows one; used to place it and to predict its placement.
 */
export function preemptionFor(snapshot: Snapshot, { spec }: Instance, request: Request): Preemption | null {
  if (spec.preemption !== 'LowerPriority' || !queueOf(snapshot).placedBelow(request.priority ?? 0)) return null;
  return choosePreemption(snapshot, request);
}

/** For a request that fits on no host: `preemptionFor` passes no other. */
export function choosePreemption(snapshot: Snapshot, request: Request): Preemption | null {
  const fleet = fleetOf(snapshot);
  const slack = slackOf(snapshot);
  let trials = trialsMax;
  let best: { readonly slot: Slot; readonly victims: readonly Guest[] } | undefined;
  for (let slot = 0; slot < fleet.length && trials > 0; slot++) {
    const host = fleet.names[slot] ?? '';
    if (!fleet.hosts[slot] || keepsRoom(fleet.nominations.on(host), request)) continue;
    const { leaving, guests } = guestsOn(snapshot, host, request.priority ?? 0);
    if (guests.length === 0 && leaving.length === 0) continue; // does not fit there, and nothing would change
    const fits = (gone: readonly Guest[]): boolean => {
      trials -= 1;
      return fitsWithout(snapshot, request, slot, [...leaving, ...gone.map(({ allocation }) => allocation)], gone);
    };
    if (!fits(guests)) continue;
    const victims = fewest(guests, { max: best?.victims.length ?? guests.length, fits, slack, more: () => trials > 0 });
    if (victims && (!best || isBetter(victims, best.victims))) best = { slot, victims };
  }
  return best ? { host: fleet.names[best.slot] ?? '', victims: best.victims.map(({ instance }) => instance) } : null;
}

function keepsRoom(nominees: Iterable<{ readonly id: string; readonly priority: number }>, request: Request): boolean {
  for (const { id, priority } of nominees) if (id !== request.asker && priority >= (request.priority ?? 0)) return true;
  return false;
}

/** The instances that may be stopped, the first to stop first; and the room that is released soon in any case. */
function guestsOn(snapshot: Snapshot, host: string, priority: number): { leaving: Allocation[]; guests: Guest[] } {
  const leaving: Allocation[] = [];
  const guests: Guest[] = [];
  for (const { value: allocation } of snapshot.allocationsOnHost(host)) {
    const { consumer } = allocation;
    if (consumer.kind !== undefined) continue;
    const instance = snapshot.instanceById(consumer.id);
    if (!instance || isLeaving(instance.value, allocation)) leaving.push(allocation);
    else if (mayBeStopped(instance.value, priority)) guests.push({ instance, allocation });
  }
  guests.sort((a, b) => compareVictims(a, b));
  return { leaving, guests };
}

function isLeaving({ metadata, status }: Instance, { host, consumer }: Allocation): boolean {
  if (metadata.deletionRequestedAtMs !== undefined) return true;
  return status.host !== host || status.incarnation !== consumer.incarnation;
}

function mayBeStopped({ metadata, spec, status }: Instance, priority: number): boolean {
  if ((spec.priority ?? 0) >= priority || spec.exclusive || spec.gang !== undefined) return false;
  return isActive({ metadata, status });
}

function isActive({ metadata, status }: Pick<Instance, 'metadata' | 'status'>): boolean {
  if (metadata.deletionRequestedAtMs !== undefined || status.host === undefined) return false;
  return activePhases.has(status.phase);
}

const activePhases: ReadonlySet<string> = new Set(['Scheduled', 'Starting', 'Running', 'Suspended']);

function compareVictims(a: Guest, b: Guest): number {
  return (
    priorityOf(a) - priorityOf(b) ||
    b.instance.value.metadata.createdAtMs - a.instance.value.metadata.createdAtMs ||
    (a.instance.key < b.instance.key ? -1 : 1)
  );
}

function priorityOf({ instance }: Guest): number {
  return instance.value.spec.priority ?? 0;
}

function fitsWithout(
  snapshot: Snapshot,
  request: Request,
  slot: Slot,
  allocations: readonly Allocation[],
  gone: readonly Guest[],
): boolean {
  const fleet = fleetOf(snapshot);
  return fleet.tentatively(() => {
    for (const { amounts, ports } of allocations) fleet.giveBack(slot, amounts, ports);
    for (const { instance } of gone) fleet.groups.try(slot, belongingOf(instance.value), -1);
    return verdictsOf(request, fleet)(slot).refusals.length === 0;
  });
}

interface Search {
  /** The most to stop. */
  readonly max: number;
  fits(gone: readonly Guest[]): boolean;
  readonly slack: Slack;
  more(): boolean;
}

/**
 * The smallest set of `guests` to stop so that the request fits, trying sizes upwards from none; null when there is
 * none within `max`.
 */
function fewest(guests: readonly Guest[], { max, fits, slack, more }: Search): readonly Guest[] | null {
  for (let count = 0; count <= Math.min(max, guests.length); count++) {
    let best: readonly Guest[] | null = null;
    for (const chosen of combinations(guests, count)) {
      if (!more()) return best ?? enough(guests, { max, fits, slack, more });
      if (!slack.allows(chosen) || (best && !isBetter(chosen, best))) continue;
      if (fits(chosen)) best = chosen;
    }
    if (best) return best;
  }
  return null;
}

/**
 * When there are too many combinations to try: stop one after the other until it fits, then keep those that are not in
 * the way.
 */
function enough(guests: readonly Guest[], { max, fits, slack }: Search): readonly Guest[] | null {
  let gone: Guest[] = [];
  for (const guest of guests) if (slack.allows([...gone, guest])) gone.push(guest);
  if (!fits(gone)) return null;
  for (const guest of gone.toReversed()) {
    const without = gone.filter((other) => other !== guest);
    if (fits(without)) gone = without;
  }
  return gone.length <= max ? gone : null;
}

function* combinations(guests: readonly Guest[], count: number, from = 0): Iterable<readonly Guest[]> {
  if (count === 0) return void (yield []);
  for (let at = from; at <= guests.length - count; at++) {
    const guest = guests[at];
    if (guest) for (const rest of combinations(guests, count - 1, at + 1)) yield [guest, ...rest];
  }
}

/** Fewer instances; else the lower highest priority, the lower sum, the younger. */
function isBetter(a: readonly Guest[], b: readonly Guest[]): boolean {
  const by =
    a.length - b.length ||
    highest(a) - highest(b) ||
    sum(a, priorityOf) - sum(b, priorityOf) ||
    sum(b, ({ instance }) => instance.value.metadata.createdAtMs) -
      sum(a, ({ instance }) => instance.value.metadata.createdAtMs);
  return by < 0;
}

function highest(guests: readonly Guest[]): number {
  return Math.max(...guests.map(priorityOf), Number.NEGATIVE_INFINITY);
}

function sum(guests: readonly Guest[], of: (guest: Guest) => number): number {
  return guests.reduce((total, guest) => total + of(guest), 0);
}

interface Slack {
  allows(victims: readonly Guest[]): boolean;
}

/**
 * What projects hold beyond their guarantee, without what is being released. Counted once per project with a guarantee.
 */
function slackOf(snapshot: Snapshot): Slack {
  const usedBy = new Map<string, Map<string, number>>();
  const used = (project: string): ReadonlyMap<string, number> => {
    let sums = usedBy.get(project);
    if (!sums) {
      usedBy.set(project, (sums = new Map()));
      for (const { value } of snapshot.list('instance')) {
        if (value.metadata.project !== project || !isActive(value)) continue;
        for (const [resourceClass, amount] of Object.entries(value.status.assigned ?? {}))
          sums.set(resourceClass, (sums.get(resourceClass) ?? 0) + amount);
      }
    }
    return sums;
  };
  return {
    allows(victims) {
      for (const project of new Set(victims.map(({ instance }) => instance.value.metadata.project))) {
        const guarantee = snapshot.get('project', keys.project(project))?.value.spec.guarantee;
        for (const [resourceClass, least] of Object.entries(guarantee ?? {})) {
          const lost = sum(victims, ({ instance: { value } }) =>
            value.metadata.project === project ? (value.status.assigned?.[resourceClass] ?? 0) : 0,
          );
          if (lost > 0 && (used(project).get(resourceClass) ?? 0) - lost < least) return false;
        }
      }
      return true;
    },
  };
}
