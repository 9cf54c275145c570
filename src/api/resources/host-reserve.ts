// The amount of a host's capacity reserved for the host itself: set by its operator, else measured by its agent. Pure.

import type { HostSpec } from './host.ts';
import type { Amounts } from './metadata.ts';

/**
 * For one resource class with `total`, which is the maximum. The operator's amount overrides the operator's percentage.
 */
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
