// For tests: controllers and hosts act by turns until nothing changes.

import type { Cache } from '../../state/cache.ts';
import type { Context } from '../../state/context.ts';
import { commitPlan } from '../../testing.ts';
import type { Controller } from '../controller.ts';

const roundsMax = 200;

/** `agents` lets the hosts act once, and says whether something changed. Throws when there is no rest after 200 rounds. */
export function settle(
  cache: Cache,
  { controllers, ctx, agents }: { controllers: readonly Controller[]; ctx: Context; agents: () => boolean },
): void {
  for (let changed = true, rounds = 0; changed; rounds++) {
    if (rounds > roundsMax) throw new Error('it does not come to rest');
    changed = agents();
    for (const controller of controllers)
      for (const key of [...controller.keys(cache)]) {
        const plan = controller.reconcile(cache, key, ctx);
        if (plan.changes.length === 0) continue;
        changed = true;
        commitPlan(cache, plan);
      }
  }
}
