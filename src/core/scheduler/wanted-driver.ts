// Which driver a request needs, and which of a host's drivers takes it: containers need the container driver, and
// nothing else uses it. The rule that refuses hosts and the placement that names the driver share this file because
// they must agree.

import { containerDriver } from '../../api/container-image.ts';
import type { Host } from '../../api/resources/host.ts';
import type { HostTerms } from './host-terms.ts';

type Terms = Pick<HostTerms, 'image' | 'driver'>;

/** Undefined: any driver for virtual machines; without an image, any driver. */
export function wantedDriver({ image, driver }: Terms): string | undefined {
  return driver ?? (image?.container ? containerDriver : undefined);
}

/** The first working driver of the host for a request that names none. */
export function usualDriver(drivers: Host['status']['drivers']): string | undefined {
  const working = drivers.filter(({ available }) => available);
  return (working.find(({ name }) => name !== containerDriver) ?? working[0])?.name;
}
