// More hosts: how many copies of an existing host would take all waiting requests together. Each copy is tried beside
// the existing hosts: empty, in the same pool, zone and so on. Hosts unlike any existing one are not considered.

import type { NearestChange } from '../../api/explanation.ts';
import type { Host } from '../../api/resources/host.ts';
import type { Fleet } from '../scheduler/fleet.ts';
import { attempt, nameOf, openHosts, placesOf, type Question } from './nearest-question.ts';
import { groupPlugins } from '../scheduler/registry.ts';
import type { Request } from '../scheduler/request.ts';
import { seat } from './seat.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import { hostsPerStep, type Steps } from '../scheduler/steps.ts';
import { judge, prepareRules } from '../scheduler/engine/verdicts.ts';
import { amountWords } from '../scheduler/words.ts';

/** Number of kinds of hosts tried: some of each hardware. */
const kindsTriedMax = 32;
/** When copies that suffice one by one do not suffice at once, this many more are tried. */
const moreTriedMax = 3;

/** `requests` wait together, the largest first. No result when all fit already. */
export function* addHosts(question: Question, requests: readonly Request[], gang?: string): Steps<NearestChange[]> {
  const { snapshot, fleet } = question;
  const { left } = attempt(question, () => seat(snapshot, requests));
  const [first] = left;
  if (!first) return [];
  let fewest: { readonly slot: Slot; readonly count: number } | undefined;
  for (const slot of yield* hostKinds({ ...question, request: first }, requests)) {
    const count = yield* countNew(question, slot, { requests, max: (fewest?.count ?? left.length + 1) - 1 });
    if (count !== null) fewest = { slot, count };
    if (fewest?.count === 1) break;
  }
  if (!fewest) return [];
  const { slot, count } = fewest;
  const room = ['VCPU', 'MEMORY_MB'].map((name) => amountWords(name, fleet.column(name)?.capacity(slot) ?? 0));
  const more = count === 1 ? 'one more host' : `${count} more hosts`;
  const where = placeWords(fleet.hosts[slot], requests);
  const whom = gang === undefined ? '' : `, for all of gang ${gang}`;
  return [
    {
      change: 'AddHost',
      message: `${more} like ${nameOf(fleet, slot)} (${[...room, ...where].join(', ')})${whom}`,
      ...placesOf(fleet, [slot]),
      cost: 20 * count,
    },
  ];
}

/** Number of copies of this host needed, at most `max`; null: more, or no number suffices. */
function* countNew(
  question: Question,
  like: Slot,
  { requests, max }: { readonly requests: readonly Request[]; readonly max: number },
): Steps<number | null> {
  yield;
  const needed = attempt(question, () => openOneByOne(question, like, { requests, max }));
  if (needed === null) return null;
  for (let count = needed; count <= Math.min(max, needed + moreTriedMax); count++) {
    yield;
    const enough = attempt(question, () => {
      if (!question.fleet.hosts[like]) return false;
      for (let i = 0; i < count; i++) question.fleet.imagineMore(like);
      return seat(question.snapshot, requests).left.length === 0;
    });
    if (enough) return count;
  }
  return null;
}

/** In a trial: adds a copy whenever a request does not fit on the existing hosts. */
function openOneByOne(
  { snapshot, fleet }: Question,
  like: Slot,
  { requests, max }: { readonly requests: readonly Request[]; readonly max: number },
): number | null {
  let count = 0;
  for (const request of requests) {
    if (seat(snapshot, [request]).left.length === 0) continue;
    if (count === max || !fleet.hosts[like]) return null;
    fleet.imagineMore(like);
    count += 1;
    if (seat(snapshot, [request]).left.length > 0) return null;
  }
  return count;
}

interface Kind {
  readonly slot: Slot;
  /** Neighbours refuse all hosts of this kind as they are. */
  readonly kept: boolean;
}

/**
 * One host of each kind that would take the first request, room and neighbours aside; first those that neighbours do
 * not refuse.
 */
function* hostKinds(question: Question, requests: readonly Request[]): Steps<Slot[]> {
  const { fleet, request } = question;
  const labels = labelsRead(requests);
  const byHardware = new Map<string, Map<string, Kind>>();
  const open = yield* openHosts(question);
  for (let from = 0; from < open.length; from += hostsPerStep) {
    yield;
    attempt(question, () => {
      const neighbours = prepareRules(groupPlugins, request, fleet);
      for (const slot of open.slice(from, from + hostsPerStep)) {
        const host = fleet.hosts[slot];
        if (!host) continue;
        const hardware = JSON.stringify(
          fleet.tree(slot).map(({ provider }) => [provider.inventories, provider.traits, provider.aggregates]),
        );
        let kinds = byHardware.get(hardware);
        if (!kinds) byHardware.set(hardware, (kinds = new Map()));
        const key = recordKey(host, labels);
        const kind = { slot, kept: judge(neighbours, slot) < 0 };
        const known = kinds.get(key);
        if (!known || isBefore(fleet, kind, known)) kinds.set(key, kind);
      }
    });
  }
  const rows = [...byHardware.values()].map((kinds) =>
    [...kinds.values()].sort((a, b) => (isBefore(fleet, a, b) ? -1 : 1)),
  );
  rows.sort(([a], [b]) => (a && b && isBefore(fleet, a, b) ? -1 : 1));
  return inTurns(rows)
    .slice(0, kindsTriedMax)
    .map(({ slot }) => slot);
}

function isBefore(fleet: Fleet, a: Kind, b: Kind): boolean {
  return a.kept === b.kept ? nameOf(fleet, a.slot) < nameOf(fleet, b.slot) : b.kept;
}

/** The first of each row, then the second of each, and so on. */
function inTurns<T>(rows: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...rows.map(({ length }) => length));
  return Array.from({ length: longest }, (_, i) => rows.flatMap((row) => row.slice(i, i + 1))).flat();
}

/** What rules read of a host's record, without its capacity. */
function recordKey({ metadata, spec, status }: Host, labels: readonly string[]): string {
  const { pool, taints, dedicatedTo, instancesMax } = spec;
  const drivers = status.drivers.filter(({ available }) => available).map(({ name }) => name);
  const { architecture, controlPlane } = status;
  const values = labels.map((label) => metadata.labels[label] ?? null);
  return JSON.stringify([pool, taints, dedicatedTo, instancesMax, drivers, architecture, controlPlane, values]);
}

/** Host labels that decide about any of the requests. */
function labelsRead(requests: readonly Request[]): string[] {
  const labels = new Set<string>(topologyKeys(requests));
  for (const { terms } of requests) {
    for (const label of Object.keys(terms.hostLabels ?? {})) labels.add(label);
    for (const { key } of terms.hostRules ?? []) labels.add(key);
  }
  return [...labels].sort();
}

function topologyKeys(requests: readonly Request[]): string[] {
  const found = new Set<string>();
  for (const { groups, belonging } of requests) {
    for (const term of groups) if ('by' in term) found.add(term.by);
    for (const { by } of belonging.repels ?? []) found.add(by);
  }
  found.delete('host');
  return [...found].sort();
}

/** The required location, when rules about neighbours use such a label. */
function placeWords(host: Host | undefined, requests: readonly Request[]): string[] {
  return topologyKeys(requests).flatMap((key) => {
    const value = host?.metadata.labels[key];
    return value === undefined ? [] : [`${key} ${value}`];
  });
}
