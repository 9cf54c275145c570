// Invariant 8: after quiet, no guest and no disk without an instance that is bound to it, no running instance without a running guest,
// and no guest running that should not.

import type { Checker, Facts } from './checker.ts';

export function leftoversChecker({ state, world, excused, dead }: Facts): Checker {
  return {
    invariant: 8,
    *unrest() {
      const instances = new Map([...state.list('instance')].map((instance) => [instance.metadata.id, instance]));
      for (const guest of world.guests()) {
        if (dead.has(guest.host) || excused.host(guest.host)) continue;
        const name = `${guest.instanceId} incarnation ${guest.incarnation} (${guest.state}) on ${guest.host}`;
        const instance = instances.get(guest.instanceId);
        if (instance === undefined) {
          yield `a guest of ${name} is left of an instance that is no more`;
          continue;
        }
        const { status } = instance;
        if (status.host !== guest.host || status.incarnation !== guest.incarnation) {
          yield `a guest of ${name} is left; the instance is incarnation ${status.incarnation} on ${status.host ?? 'no host'}`;
          continue;
        }
        if (guest.running !== (status.phase === 'Running' || status.phase === 'Suspended'))
          yield `a guest of ${name} ${guest.running ? 'runs' : 'does not run'}; its instance is ${status.phase}`;
        else if ((guest.state === 'suspended') !== (status.phase === 'Suspended'))
          yield `a guest of ${name} is not as its instance, which is ${status.phase}`;
      }
      for (const { metadata, status } of instances.values()) {
        if (status.phase !== 'Running' && status.phase !== 'Suspended') continue;
        if (world.guest(status.host ?? '', metadata.id)?.running !== true)
          yield `instance ${metadata.name} is ${status.phase} on ${status.host ?? 'no host'}, and no guest runs there`;
      }
    },
  };
}
