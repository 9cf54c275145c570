// Invariant 9, as tenants see it: a start that the API shows for an incarnation did happen. The checker must see the guest before the commit
// that shows its start.

import type { Checker, Facts } from './checker.ts';

export function toldStartChecker({ world, excused }: Facts): Checker {
  /** By host, instance and incarnation: each start, on the clock of the host. */
  const starts = new Map<string, Set<number>>();
  return {
    invariant: 9,
    onGuest(host, instanceId) {
      const guest = world.guest(host, instanceId);
      if (guest === undefined || excused.host(host)) return undefined;
      const name = `${host} ${instanceId} ${guest.incarnation}`;
      const known = starts.get(name) ?? new Set();
      starts.set(name, known);
      if (guest.startedAtMs !== undefined) known.add(guest.startedAtMs);
      return undefined;
    },
    onCommit({ events }) {
      for (const { key, after } of events) {
        if (after?.kind !== 'instance') continue;
        const { guest, host = '', incarnation } = after.status;
        if (guest?.startedAtMs === undefined || excused.host(host)) continue;
        const known = starts.get(`${host} ${after.metadata.id} ${incarnation}`);
        if (known && !known.has(guest.startedAtMs))
          return `instance ${after.metadata.name} is told to have started at ${guest.startedAtMs}, when it did not (${key})`;
      }
      return undefined;
    },
  };
}
