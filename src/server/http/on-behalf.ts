// Decisions on behalf of a caller: rights are checked on the snapshot of the decision, and the audit log names the caller.

import type { AnyResource } from '../../api/resources/index.ts';
import { assertMayChange } from '../../core/access/change.ts';
import { assertMayOn } from '../../core/access/may.ts';
import type { Principal } from '../../core/access/principal.ts';
import type { Decision } from '../../core/operations/decision.ts';
import type { Context } from '../../core/state/context.ts';
import { kindOfKey } from '../../core/state/keys.ts';
import type { Plan, PlanAuthor } from '../../core/state/plan.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { trailOf } from '../audit/trail.ts';
import { type Decided, decideAllAndCommit, decideAndCommit, type Decider } from '../decide.ts';
import type { Caller } from './caller.ts';
import { isResource } from './routes/present.ts';

type Decide<D> = (snapshot: Snapshot, ctx: Context, attempt: number) => D;

/**
 * `decide` checks the caller's rights on its own snapshot, because these may have changed since the request arrived. The audit log has the
 * outcome before this resolves or rejects.
 */
export async function decideFor<D extends { readonly plan: Plan }>(
  decider: Decider,
  { caller }: { readonly caller: Caller },
  decide: Decide<D>,
): Promise<Decided<D>> {
  const trail = trailOf(caller);
  const { traceParent, from } = caller;
  if (trail === undefined) return decideAndCommit({ ...decider, traceParent, from }, decide);
  trail.assertWritable();
  let author: PlanAuthor | undefined;
  const authored: Decide<D> = (snapshot, ctx, attempt) => {
    const decision = decide(snapshot, ctx, attempt);
    author = trail.decided(decision);
    return decision;
  };
  let decided: Decided<D>;
  try {
    decided = await decideAndCommit({ ...decider, traceParent, from, author: () => author }, authored);
  } catch (error) {
    await trail.failed(error, author);
    throw error;
  }
  const line = trail.done(decided, author);
  if (line) await line;
  return decided;
}

/** The same for many. A decision that was committed without its line in the audit log is answered with `AuditUnavailable`. */
export async function decideAllFor<D extends { readonly plan: Plan }>(
  decider: Decider,
  { caller }: { readonly caller: Caller },
  all: readonly Decide<D>[],
): Promise<readonly (Decided<D> | { readonly error: unknown })[]> {
  const trail = trailOf(caller);
  const { traceParent, from } = caller;
  if (trail === undefined) return decideAllAndCommit({ ...decider, traceParent, from }, all);
  trail.assertWritable();
  const authors: (PlanAuthor | undefined)[] = all.map(() => undefined);
  let latest: PlanAuthor | undefined;
  const decides = all.map(
    (decide, i): Decide<D> =>
      (snapshot, ctx, attempt) => {
        latest = undefined;
        const decision = decide(snapshot, ctx, attempt);
        authors[i] = latest = trail.decided(decision);
        return decision;
      },
  );
  const results = await decideAllAndCommit({ ...decider, traceParent, from, author: () => latest }, decides);
  return Promise.all(
    results.map(async (result, i) => {
      try {
        await ('error' in result ? trail.failed(result.error, authors[i]) : trail.done(result, authors[i]));
        return result;
      } catch (error) {
        return { error };
      }
    }),
  );
}

/** Wraps a decision: refused when the principal may not make this change. Throws `Forbidden` or `NotFound`. */
export function permitted<D extends Decision>(principal: Principal, decide: Decide<D>): Decide<D> {
  if (principal.kind === 'admin') return decide;
  return (snapshot, ctx, attempt) => {
    const decision = decide(snapshot, ctx, attempt);
    const { plan, key } = decision;
    const before = resourceAt(snapshot, key);
    const change = plan.changes.find((each) => each.key === key);
    if (change === undefined) {
      if (before) assertMayOn(snapshot, principal, 'read', before); // nothing changes
    } else if (change.value === null) assertMayChange(snapshot, principal, { before, after: null });
    else if (isResource(change.value)) assertMayChange(snapshot, principal, { before, after: change.value });
    return decision;
  };
}

function resourceAt(snapshot: Snapshot, key: string): AnyResource | undefined {
  const kind = kindOfKey(key);
  const value = kind && snapshot.get(kind, key)?.value;
  return value && isResource(value) ? value : undefined;
}
