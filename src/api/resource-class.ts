// The known resource classes, so that a mistyped one is refused instead of becoming a limit or a request without
// effect. Pure.

import { nearest } from './nearest.ts';
import { matches } from './parse.ts';
import { gpuClass } from './resources/host-rules.ts';
import { CustomResourceClass } from './resources/metadata.ts';
import { standardClasses } from './resources/standard-classes.ts';

const measured = ['VCPU', 'MEMORY_MB', 'DISK_GB'] as const;

/** The class that counts instances, in quotas only. */
export const instancesClass = 'INSTANCES';

/** What is wrong with the name of a class, or undefined. `more`: further classes allowed at this place. */
export function classFault(resourceClass: string, more: readonly string[] = []): string | undefined {
  // The classes that agents report. Other classes come only from a host's inventory or a client of the Placement API.
  const known: readonly string[] = [...measured, ...more, gpuClass];
  const custom: boolean = matches(CustomResourceClass, resourceClass);
  if (custom || known.includes(resourceClass) || standardClasses.includes(resourceClass)) return undefined;
  if (resourceClass === instancesClass) return `${instancesClass} counts in quotas only`;
  const meant =
    known.find((word) => word.split('_').includes(resourceClass.toUpperCase())) ?? nearest(resourceClass, known);
  const shown = resourceClass.slice(0, 64).replace(/[^\x20-\x7e]/g, '?');
  const hint =
    meant === undefined
      ? `known: ${known.join(', ')}, others of OpenStack, and CUSTOM_...`
      : `did you mean "${meant}"?`;
  return `there is no resource class "${shown}"; ${hint}`;
}
