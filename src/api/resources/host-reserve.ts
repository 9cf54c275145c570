// What is kept back of a host's room for the host itself: as its operator says, else as its agent measured. Pure.

import type { HostSpec } from './host.ts';
import type { Amounts } from './metadata.ts';

/** Of one resource class, of which there is `total`: never more than that. The operator's amount wins over the operator's percentage. */
export function reservedOf(
  spec: HostSpec,
  {
    resourceClass,
    total,
    measuredReserve,
  }: { readonly resourceClass: string; readonly total: number; readonly measuredReserve: Amounts },
): number {
  const percent = spec.inventory?.[resourceClass]?.reservedPercent;
  const wanted =
    spec.reserved?.[resourceClass] ??
    (percent === undefined ? (measuredReserve[resourceClass] ?? 0) : Math.ceil((total * percent) / 100));
  return Math.min(total, wanted);
}
