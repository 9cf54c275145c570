// How many guests of a warm pool its budget has room for.

import { instancesClass } from '../../api/resource-class.ts';
import type { Amounts } from '../../api/resources/metadata.ts';

export interface Fitting {
  readonly guests: number;
  /** What limits them, in words; absent without a budget for what a guest asks for. */
  readonly limit?: string;
}

/** `asked`: by one guest. Without a budget, any number. */
export function fittingIn(budget: Amounts | undefined, asked: Amounts): Fitting {
  let fitting: Fitting = { guests: Number.POSITIVE_INFINITY };
  for (const [resourceClass, most] of Object.entries(budget ?? {})) {
    const each = resourceClass === instancesClass ? 1 : (asked[resourceClass] ?? 0);
    const guests = each > 0 ? Math.floor(most / each) : Number.POSITIVE_INFINITY;
    if (guests >= fitting.guests) continue;
    fitting = { guests, limit: `spec.budget.${resourceClass} is ${most}, and a guest asks for ${each}` };
  }
  return fitting;
}
