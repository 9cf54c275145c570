// Invariant 2: an exclusive instance never runs twice at once; and no instance ever runs twice on one host.

import type { Checker, Facts } from './checker.ts';

export function copiesChecker({ state, world, excused, dead }: Facts): Checker {
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
        if (excused.instance(instanceId)) continue;
        if (new Set(hosts).size < hosts.length || hosts.length < 2)
          return `${instanceId} was started twice on ${hosts[0]}`;
        if (exclusive.has(instanceId)) return `exclusive ${instanceId} runs on ${hosts.join(' and ')} at once`;
      }
      return undefined;
    },
    recount() {
      for (const { spec, metadata } of state.list('instance'))
        if (spec.exclusive && !exclusive.has(metadata.id)) return `never noted that ${metadata.id} is exclusive`;
      const running = new Map<string, string>();
      for (const guest of world.guests()) {
        if (!guest.running || !exclusive.has(guest.instanceId) || excused.instance(guest.instanceId)) continue;
        const other = running.get(guest.instanceId);
        if (other !== undefined) return `never saw exclusive ${guest.instanceId} run on ${other} and ${guest.host}`;
        running.set(guest.instanceId, guest.host);
      }
      return undefined;
    },
    *unrest() {
      const running = new Map<string, string>();
      for (const guest of world.guests()) {
        if (!guest.running || excused.instance(guest.instanceId)) continue;
        const other = running.get(guest.instanceId);
        if (other !== undefined) yield `${guest.instanceId} runs on ${other} and on ${guest.host}`;
        running.set(guest.instanceId, guest.host);
      }
      for (const { status, metadata } of state.list('host')) {
        const ready = status.conditions.find(({ type }) => type === 'Ready');
        if (dead.has(metadata.name)) {
          if (ready?.status === 'True') yield `host ${metadata.name} is gone for good and called ready`;
          continue;
        }
        if (ready?.status !== 'True') yield `host ${metadata.name} is back and not ready`;
        if (excused.host(metadata.name)) continue;
        for (const { instanceId } of status.unknownGuests)
          yield `host ${metadata.name} tells of an unknown guest ${instanceId}`;
      }
    },
  };
}
