// Invariant 2, its safety half: an exclusive instance never runs twice at once; and no instance ever runs twice on one host.

import type { Checker, Facts } from './checker.ts';

export function copiesChecker({ state, world }: Facts): Checker {
  const exclusive = new Set<string>();
  let seen = 0;
  return {
    invariant: 2,
    onCommit({ events }) {
      for (const { after } of events)
        if (after?.kind === 'instance' && after.spec.exclusive) exclusive.add(after.metadata.id);
      return undefined;
    },
    onGuest() {
      for (const { instanceId, hosts } of world.doubleStarts.slice(seen)) {
        seen += 1;
        if (new Set(hosts).size < hosts.length || hosts.length < 2)
          return `${instanceId} was started twice on ${hosts[0]}`;
        if (exclusive.has(instanceId)) return `exclusive ${instanceId} runs on ${hosts.join(' and ')} at once`;
      }
      return undefined;
    },
    *unrest() {
      const running = new Map<string, string>();
      for (const guest of world.guests()) {
        if (!guest.running) continue;
        const other = running.get(guest.instanceId);
        if (other !== undefined) yield `${guest.instanceId} runs on ${other} and on ${guest.host}`;
        running.set(guest.instanceId, guest.host);
      }
      for (const { status, metadata } of state.list('host')) {
        const ready = status.conditions.find(({ type }) => type === 'Ready');
        if (ready?.status !== 'True') yield `host ${metadata.name} is back and not ready`;
        for (const { instanceId } of status.unknownGuests)
          yield `host ${metadata.name} tells of an unknown guest ${instanceId}`;
      }
    },
  };
}
