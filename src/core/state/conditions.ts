// Conditions: what is true of a resource, since when, and why. Setting a condition to its present value changes
// nothing.

import type { Condition } from '../../api/resources/metadata.ts';

export type NewCondition = Omit<Condition, 'sinceMs'>;

/** `conditions` with each of `changes` replacing the one of its type; `sinceMs` changes only with `status`. */
export function withConditions(
  conditions: readonly Condition[],
  changes: readonly NewCondition[],
  nowMs: number,
): Condition[] {
  let result = [...conditions];
  for (const { type, status, reason, message } of changes) {
    const at = result.findIndex((condition) => condition.type === type);
    const old = result[at];
    // Field by field, and never `push`: half a million instances keep these, and both would allocate spare capacity in
    // each.
    const next = { type, status, reason, message, sinceMs: old?.status === status ? old.sinceMs : nowMs };
    if (old) result[at] = next;
    else result = result.concat(next);
  }
  return result;
}

/** Whether the host's agent is connected. */
export function isReady({ conditions }: { readonly conditions: readonly Condition[] }): boolean {
  return conditionOf(conditions, 'Ready')?.status === 'True';
}

/** Whether it is being drained, or was, and has not been opened since. */
export function isDraining(
  host: { readonly status: { readonly conditions: readonly Condition[] } } | undefined,
): boolean {
  return host !== undefined && conditionOf(host.status.conditions, 'Draining')?.status === 'True';
}

export function conditionOf(conditions: readonly Condition[], type: string): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}
