// Invariant 5: an allocation exists exactly as long as its consumer may use the room, and is released once. While anything of a guest
// is on a host, that incarnation holds room there; while it runs, all of it. At rest nothing is held without a consumer.

import type { Allocation } from '../../core/state/records.ts';
import type { Checker, Facts } from './checker.ts';

export function allocationChecker({ state, world }: Facts): Checker {
  const made = new Set<string>();

  /** What is wrong with the room of this guest, if there is one. */
  const check = (host: string, instanceId: string): string | undefined => {
    const guest = world.guest(host, instanceId);
    if (guest === undefined) return undefined;
    const name = `${instanceId} incarnation ${guest.incarnation} on ${host}`;
    const allocation = state.get('allocation', `allocations/${instanceId}.${guest.incarnation}`);
    if (allocation === undefined || allocation.host !== host)
      return `a guest of ${name} is there (${guest.state}) and holds no room`;
    if (guest.running && !holdsCpu(allocation)) return `a guest of ${name} runs and holds no CPU`;
    return undefined;
  };

  return {
    invariant: 5,
    onCommit({ events }) {
      for (const { key, before, after } of events) {
        if (after?.kind === 'allocation' && before === null) {
          if (made.has(key)) return `${key} was released and is held again`;
          made.add(key);
        }
        const allocation = before?.kind === 'allocation' ? before : undefined;
        if (allocation === undefined) continue;
        const fault = check(allocation.host, allocation.consumer.id);
        if (fault !== undefined) return fault;
      }
      return undefined;
    },
    onGuest: check,
    *unrest() {
      for (const { consumer, host, amounts } of state.list('allocation')) {
        const name = `${consumer.id}.${consumer.incarnation} on ${host}`;
        const instance = state.get('instance', `instances/${consumer.project}/${consumer.name}`);
        if (instance?.metadata.id !== consumer.id) {
          yield `room is held for ${name}, which is no more`;
          continue;
        }
        const { status } = instance;
        if (status.incarnation !== consumer.incarnation || status.host !== host) {
          yield `room is held for ${name}, which is incarnation ${status.incarnation} on ${status.host ?? 'no host'} now`;
          continue;
        }
        const over = status.phase === 'Exited' || status.phase === 'Failed';
        if (over && Object.values(amounts).some((held) => Object.keys(held).some((name) => name !== 'DISK_GB')))
          yield `${name} is ${status.phase} and holds more than its disk`;
      }
      for (const { metadata, status } of state.list('instance')) {
        if (status.host === undefined) continue;
        const allocation = state.get('allocation', `allocations/${metadata.id}.${status.incarnation}`);
        if (allocation?.host !== status.host)
          yield `${metadata.name} is bound to ${status.host} and holds no room there`;
      }
    },
  };
}

function holdsCpu({ amounts }: Allocation): boolean {
  return Object.values(amounts).some((held) => (held['VCPU'] ?? 0) > 0);
}
