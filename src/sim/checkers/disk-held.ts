// Invariant 5, for what outlasts a run: while a guest that was made is on a host, running or not, the room of its disk is held there.

import type { Checker, Facts } from './checker.ts';

export function diskHeldChecker({ state, world }: Facts): Checker {
  const check = (host: string, instanceId: string): string | undefined => {
    const guest = world.guest(host, instanceId);
    if (!guest?.created) return undefined;
    const allocation = state.get('allocation', `allocations/${instanceId}.${guest.incarnation}`);
    if (allocation === undefined) return undefined; // that is for allocation.ts
    const { project, name } = allocation.consumer;
    const instance = state.get('instance', `instances/${project}/${name}`);
    // A guest that was left on a lost host keeps the disk that it had; the spec may have grown since, elsewhere.
    const isCurrent = instance?.metadata.id === instanceId && instance.status.incarnation === guest.incarnation;
    const asked = isCurrent ? (instance.spec.diskGiB ?? 0) : 0;
    let held = 0;
    for (const amounts of Object.values(allocation.amounts)) held += amounts['DISK_GB'] ?? 0;
    return held < asked
      ? `a guest of ${instanceId} incarnation ${guest.incarnation} on ${host} has a disk of ${asked} GiB, and ${held} are held`
      : undefined;
  };
  return {
    invariant: 5,
    overRestore: 'after',
    onCommit({ events }) {
      for (const { before } of events) {
        if (before?.kind !== 'allocation' || before.consumer.kind !== undefined) continue;
        const fault = check(before.host, before.consumer.id);
        if (fault !== undefined) return fault;
      }
      return undefined;
    },
    onGuest: check,
  };
}
