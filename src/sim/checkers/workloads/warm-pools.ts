// Warm pools: at rest each has as many guests of its present template as are wanted, and none is left of one that is gone. A guest leaves
// its pool by a claim only, and none comes back.

import type { InstanceStatus } from '../../../api/resources/instance.ts';
import type { Checker, Facts } from '../checker.ts';

export function warmPoolsChecker({ state, dead }: Facts): Checker {
  const hasGuest = (id: string, is: (status: InstanceStatus) => boolean): boolean => {
    for (const { status } of state.list('instance')) if (status.warmPool?.id === id && is(status)) return true;
    return false;
  };
  /** What a dead host has is never reported to be gone. */
  const leavesOnDeadHost = (id: string): boolean => hasGuest(id, ({ host = '' }) => dead.has(host));
  /** While there is no room for its successor, a guest of the former template stays. */
  const waitsForRoom = (id: string): boolean => hasGuest(id, ({ phase }) => phase === 'Pending');
  return {
    invariant: 0,
    onCommit({ events }) {
      for (const { before, after } of events) {
        if (before?.kind !== 'instance' || after?.kind !== 'instance') continue;
        if (before.metadata.id !== after.metadata.id) continue;
        if (before.status.claimed !== undefined && after.status.warmPool !== undefined)
          return `instance ${after.metadata.name} was claimed, and is in its warm pool again`;
        if (before.status.warmPool !== undefined && after.status.warmPool === undefined && !after.status.claimed)
          return `instance ${after.metadata.name} left its warm pool without a claim`;
      }
      return undefined;
    },
    *unrest() {
      const guests = new Map<string, number>();
      for (const { metadata, status } of state.list('instance')) {
        if (status.warmPool === undefined || metadata.deletionRequestedAtMs !== undefined) continue;
        const { id, name, template } = status.warmPool;
        const pool = state.get('warmPool', `warm-pools/${metadata.project}/${name}`);
        if (pool?.metadata.id !== id) yield `instance ${metadata.name} is left of warm pool ${name}, which is gone`;
        else if (pool.status.template !== template && status.phase === 'Running') {
          if (waitsForRoom(id)) continue;
          yield `instance ${metadata.name} of warm pool ${name} has a former template`;
        }
        guests.set(id, (guests.get(id) ?? 0) + 1);
      }
      for (const { metadata, status } of state.list('warmPool')) {
        const { id, name } = metadata;
        const { message: said, reason } = status.conditions[0] ?? {};
        // A quota may be full for ever.
        const isRefused = reason === 'QuotaExceeded';
        if (metadata.deletionRequestedAtMs !== undefined) {
          if (!leavesOnDeadHost(id)) yield `warm pool ${name} is being removed`;
        } else if (status.failures === undefined && !isRefused && (guests.get(id) ?? 0) !== status.wanted)
          yield `warm pool ${name} has ${guests.get(id) ?? 0} guests, and ${status.wanted} are wanted: ${said}`;
      }
    },
  };
}
