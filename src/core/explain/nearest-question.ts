// The question behind nearest changes: which request, on which fleet. Suppositions are laid over the fleet in a trial,
// and all rules are evaluated; nothing remains afterwards.

import type { Instance } from '../../api/resources/instance.ts';
import type { Allocation } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { belongingOf, placeOf } from '../scheduler/neighbours/belonging.ts';
import { withoutItself } from './explain-trial.ts';
import type { Fleet } from '../scheduler/fleet.ts';
import { hostPlugins, plugins } from '../scheduler/registry.ts';
import type { Request } from '../scheduler/request.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import { hostsPerStep, type Steps } from '../scheduler/steps.ts';
import { judge, prepareRules } from '../scheduler/engine/verdicts.ts';
import { listed } from '../scheduler/words.ts';

/** Hosts tried per kind of change. */
export const hostsTriedMax = 256;
export const hostsNamedMax = 5;

export interface Question {
  readonly snapshot: Snapshot;
  readonly fleet: Fleet;
  readonly instance: Instance;
  readonly request: Request;
  /** Consumers whose end is not considered: they have left already, or their end would not help. */
  readonly spared?: ReadonlySet<string>;
  /** What else holds in every trial. */
  readonly suppose?: () => void;
}

export function attempt<T>({ snapshot, fleet, instance, suppose }: Question, body: () => T): T {
  return withoutItself(snapshot, fleet, instance, () => {
    suppose?.();
    return body();
  });
}

/** Whether all rules allow the request on a host, in the current trial. */
export function fitter(fleet: Fleet, request: Request): (slot: Slot) => boolean {
  const rules = prepareRules(plugins, request, fleet);
  return (slot) => fleet.hosts[slot] !== undefined && judge(rules, slot) >= 0;
}

/** Hosts that would take the request, room and neighbours aside. */
export function* openHosts({ fleet, request }: Pick<Question, 'fleet' | 'request'>): Steps<Slot[]> {
  const open: Slot[] = [];
  for (let from = 0; from < fleet.length; from += hostsPerStep) {
    if (from > 0) yield;
    const rules = prepareRules(hostPlugins, request, fleet);
    const end = Math.min(fleet.length, from + hostsPerStep);
    for (let slot = from; slot < end; slot++) if (fleet.hosts[slot] && judge(rules, slot) >= 0) open.push(slot);
  }
  return open;
}

/** In a trial: a consumer leaves the host, or (sign -1) returns. */
export function leave(
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

export function consumerWords(snapshot: Snapshot, { kind, id, project, name }: Allocation['consumer']): string {
  if (kind === 'task' || kind === 'volume') return `${kind} ${project}/${name}`;
  if (kind === 'outside') return `the claim of outside consumer ${id}`;
  const instance = snapshot.instanceById(id)?.value;
  return instance ? `instance ${project}/${name}` : `remains of instance ${project}/${name}`;
}

// Messages.

export function nameOf(fleet: Fleet, slot: Slot): string {
  return fleet.names[slot] ?? '';
}

export function hostWords(fleet: Fleet, slots: readonly Slot[]): string {
  const names = slots.map((slot) => nameOf(fleet, slot));
  return names.length === 1 ? `host ${names[0]}` : `one of ${names.length} hosts (${listed(names)})`;
}

export function placesOf(fleet: Fleet, slots: readonly Slot[]): { hosts: string[]; hostCount: number } {
  const names = slots.map((slot) => nameOf(fleet, slot)).sort();
  return { hosts: names.slice(0, hostsNamedMax), hostCount: names.length };
}
