// The plan of a rolling update in words. Without schemas, for the command line and the browser.

import type { RolloutPlan } from './rollout-plan.ts';

/** How many copies are replaced at a time, in words. */
export function paceText({ strategy, surge, unavailable, replicas }: RolloutPlan): string {
  if (strategy === 'Recreate') return 'all old copies are removed before the first new one is created';
  return `at most ${copiesText(replicas.after + surge)} exist at a time, at least ${replicas.after - unavailable} stay available`;
}

export function copiesText(count: number): string {
  return count === 1 ? '1 copy' : `${count} copies`;
}
