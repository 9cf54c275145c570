// The result of an operation: a Plan, and the key of its resource. Refusals are thrown as ApiError.

import type { Plan } from '../state/plan.ts';

export interface Decision {
  readonly plan: Plan;
  /** The resource that the response shows once the Plan is durable. */
  readonly key: string;
  /** False when the request repeats one that is done. */
  readonly changed: boolean;
}
