// One request, one commit.

import type { Context } from '../../core/state/context.ts';
import type { Plan } from '../../core/state/plan.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { decideAndCommit } from '../decide.ts';
import { decideFor } from '../http/on-behalf.ts';
import type { Exchange } from './exchange.ts';

/** Decides until the Plan is durable; what the decision says besides. */
export async function commit<D extends { readonly plan: Plan }>(
  { decider, request: { as: caller } }: Exchange,
  decide: (snapshot: Snapshot, ctx: Context) => D,
): Promise<D> {
  const decided = caller ? decideFor(decider, { caller }, decide) : decideAndCommit(decider, decide);
  return (await decided).decision;
}
