// What operators do to use fewer hosts: show the plan, apply it by its hash. It is carried out as drains that open their hosts again.

import { ApiError } from '../../../api/errors.ts';
import type { HostDrain } from '../../../api/plans/host-plan.ts';
import type { RebalanceOptions, RebalancePlan } from '../../../api/plans/rebalance.ts';
import { drainOptionsOf, planRebalance } from '../../plans/rebalance.ts';
import type { Context } from '../../state/context.ts';
import type { Change, Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { startedDrain } from './host-drain.ts';

/** Throws `Conflict` when the hash is of another plan: `plan` is what it would be now. */
export function beginRebalance(
  snapshot: Snapshot,
  { options, hash }: { readonly options: RebalanceOptions; readonly hash: string },
  ctx: Context,
): { readonly plan: Plan; readonly drains: readonly HostDrain[] } {
  const now = planRebalance(snapshot, options, ctx);
  if (now.hash !== hash) throw another(now);
  const changes: Change[] = [];
  const drains: HostDrain[] = [];
  const drainOptions = drainOptionsOf(options, now.hosts.length);
  for (const { host, hostId, guests } of now.hosts) {
    const begun = startedDrain(snapshot, { host, hostId, guests, options: drainOptions, hash }, ctx);
    changes.push(...begun.changes);
    drains.push(begun.drain);
  }
  return { plan: { changes }, drains };
}

function another({ hash, moves, hosts }: RebalancePlan): ApiError {
  const now = `${moves} moves that empty ${hosts.length} hosts`;
  return new ApiError('Conflict', `the plan is no longer as it was shown; it is now: ${now}; look at the plan again`, {
    field: 'apply',
    details: { hash },
  });
}
