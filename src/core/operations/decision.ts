// What an operation answers: a Plan, and the key of what it is about. Refusals are thrown as ApiError.

import type { Plan } from '../state/plan.ts';

export interface Decision {
  readonly plan: Plan;
  /** The resource that the answer shows once the Plan is durable. */
  readonly key: string;
  /** False when the request had been done before and this is a repetition. */
  readonly changed: boolean;
}
