// One request, one commit.

import type { Context } from '../../core/state/context.ts';
import type { Plan } from '../../core/state/plan.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { decideAndCommit } from '../decide.ts';
import type { Exchange } from './exchange.ts';

/** Decides until the Plan is durable; what the decision says besides. */
export async function commit<D extends { readonly plan: Plan }>(
  { decider }: Exchange,
  decide: (snapshot: Snapshot, ctx: Context) => D,
): Promise<D> {
  return (await decideAndCommit(decider, decide)).decision;
}
