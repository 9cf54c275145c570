// The result of an operation: a Plan, and the key of its resource. Refusals are thrown as ApiError.

import { type Plan, unchanged } from '../state/plan.ts';

export interface Decision {
  readonly plan: Plan;
  /** The resource that the response shows once the Plan is durable. */
  readonly key: string;
  /** False when the request repeats one that is done. */
  readonly changed: boolean;
}

/** The request is done already, as `entry` shows. */
export function alreadyDone(entry: { readonly key: string; readonly revision: number }): Decision {
  return { plan: unchanged(entry), key: entry.key, changed: false };
}
