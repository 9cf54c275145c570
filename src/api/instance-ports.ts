// All ports that an instance publishes: its own, and those of its containers. Pure.

import type { GuestPort } from './resources/guest.ts';
import type { InstanceSpec } from './resources/instance.ts';

export function portsOf(
  spec: Pick<InstanceSpec, 'ports'> & { readonly containers?: InstanceSpec['containers'] },
): GuestPort[] {
  const ofContainers = (spec.containers ?? []).flatMap(({ ports }) =>
    ports.map(({ containerPort, ...port }) => ({ guestPort: containerPort, ...port })),
  );
  return ofContainers.length === 0 ? spec.ports : [...spec.ports, ...ofContainers];
}

/** Per instance, including its containers. */
export const portsMax = 64;
