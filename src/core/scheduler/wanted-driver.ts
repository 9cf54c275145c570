// Which driver a request needs, and which of a host's takes it: what is of containers goes to the driver for containers, and nothing else
// does. One place, for the rule that refuses hosts and the placement that names the driver must agree.

import { containerDriver } from '../../api/container-image.ts';
import type { Host } from '../../api/resources/host.ts';
import type { HostTerms } from './host-terms.ts';

type Terms = Pick<HostTerms, 'image' | 'driver'>;

/** Undefined: any that runs virtual machines, or, without an image, any at all. */
export function wantedDriver({ image, driver }: Terms): string | undefined {
  return driver ?? (image?.container ? containerDriver : undefined);
}

/** Of the host's drivers that work, the one that takes a request which names none. */
export function usualDriver(drivers: Host['status']['drivers']): string | undefined {
  const working = drivers.filter(({ available }) => available);
  return (working.find(({ name }) => name !== containerDriver) ?? working[0])?.name;
}
