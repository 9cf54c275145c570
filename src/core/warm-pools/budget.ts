// How many guests of a warm pool its budget has room for.

import { instancesClass } from '../../api/resource-class.ts';
import type { Amounts } from '../../api/resources/metadata.ts';

/** `asked`: by one guest. Without a budget, any number. */
export function fittingIn(budget: Amounts | undefined, asked: Amounts): number {
  let fits = Number.POSITIVE_INFINITY;
  for (const [resourceClass, most] of Object.entries(budget ?? {})) {
    const each = resourceClass === instancesClass ? 1 : (asked[resourceClass] ?? 0);
    if (each > 0) fits = Math.min(fits, Math.floor(most / each));
  }
  return fits;
}
