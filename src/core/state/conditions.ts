// Conditions: what is true of a resource now, since when, and why. Setting one to what it is changes nothing.

import type { Condition } from '../../api/resources/metadata.ts';

export type NewCondition = Omit<Condition, 'sinceMs'>;

/** `conditions` with each of `changes` in the place of the one of its type; `sinceMs` moves only when `status` does. */
export function withConditions(
  conditions: readonly Condition[],
  changes: readonly NewCondition[],
  nowMs: number,
): Condition[] {
  const result = [...conditions];
  for (const change of changes) {
    const at = result.findIndex((condition) => condition.type === change.type);
    const old = result[at];
    const next = { ...change, sinceMs: old?.status === change.status ? old.sinceMs : nowMs };
    if (old) result[at] = next;
    else result.push(next);
  }
  return result;
}

export function conditionOf(conditions: readonly Condition[], type: string): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}
