// The fleet as columns, in order of names: read from the scheduler's columns in one pass.

import type { FleetMap } from '../../api/lists/fleet-map.ts';
import type { Host } from '../../api/resources/host.ts';
import { hostStateName } from '../../api/resources/host-state.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { fleetOf } from './fleet.ts';

export function fleetMapOf(
  snapshot: Snapshot,
  { hosts, labels }: { readonly hosts: Iterable<Host>; readonly labels: readonly string[] },
): Omit<FleetMap, 'revision' | 'epoch' | 'use'> {
  const fleet = fleetOf(snapshot);
  const sorted = [...hosts].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  // A host that is not committed yet, or has been deleted since, has nothing that could be claimed.
  const slots = sorted.map(({ metadata }) => fleet.slotOf(metadata.name));
  const columnOf = (read: (slot: number) => number): number[] =>
    slots.map((slot) => (slot === undefined ? 0 : read(slot)));
  return {
    names: sorted.map(({ metadata }) => metadata.name),
    pools: sorted.map(({ spec }) => spec.pool ?? 'default'),
    states: sorted.map(hostStateName),
    labels: Object.fromEntries(
      labels.map((label) => [label, sorted.map(({ metadata }) => metadata.labels[label] ?? null)]),
    ),
    consumers: columnOf((slot) => fleet.guests[slot] ?? 0),
    classes: Object.fromEntries(
      [...fleet.columns()].map((column) => [
        column.resourceClass,
        { capacity: columnOf((slot) => column.capacity(slot)), used: columnOf((slot) => column.used(slot)) },
      ]),
    ),
  };
}
