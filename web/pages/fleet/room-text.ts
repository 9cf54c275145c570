// The room of the fleet in words. Pure.

import type { LossCapacity, SizeCapacity } from '../../../src/api/capacity.ts';

/** `12 × medium`; `1000+ × tiny` where the count ended. */
export function fitsText({ size, more, atLeast }: Pick<SizeCapacity, 'size' | 'more' | 'atLeast'>): string {
  return `${more}${atLeast ? '+' : ''} × ${size ?? 'as asked'}`;
}

/** The worst case is named, with what would find no place. */
export function lossText({ checked, of, survived, worst: [worst] }: LossCapacity): string {
  if (of === 0) return 'No host has instances.';
  const tried =
    checked < of
      ? `the ${checked} fullest of ${of} hosts were tried`
      : `${of} ${of === 1 ? 'host was' : 'hosts were'} tried`;
  if (survived === checked || worst === undefined) return `Everything would fit elsewhere: ${tried}.`;
  const lost = checked - survived;
  return `Not everything would fit elsewhere in ${lost} ${lost === 1 ? 'case' : 'cases'}: ${tried}. Worst: without ${worst.hosts.join(' and ')}, ${worst.unplaced} of ${worst.instances} instances find no place.`;
}
