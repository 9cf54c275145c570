// Decisions on behalf of a caller: what they change is asked about on their own snapshot, and they are known as the caller's.

import type { AnyResource } from '../../api/resources/index.ts';
import { assertMayChange } from '../../core/access/change.ts';
import { assertMayOn } from '../../core/access/may.ts';
import type { Principal } from '../../core/access/principal.ts';
import type { Decision } from '../../core/operations/decision.ts';
import type { Context } from '../../core/state/context.ts';
import { kindOfKey } from '../../core/state/keys.ts';
import type { Plan } from '../../core/state/plan.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { authorOf, type Trail, trailOf } from '../audit/trail.ts';
import { type Decided, decideAllAndCommit, decideAndCommit, type Decider } from '../decide.ts';
import type { Caller } from './caller.ts';
import { isResource } from './routes/present.ts';

type Decide<D> = (snapshot: Snapshot, ctx: Context, attempt: number) => D;

/**
 * `decide` has asked what the caller may do, on its snapshot: rights may have changed since the request came. The audit log says what came
 * of it before this resolves or rejects.
 */
export async function decideFor<D extends { readonly plan: Plan }>(
  decider: Decider,
  { caller }: { readonly caller: Caller },
  decide: Decide<D>,
): Promise<Decided<D>> {
  const trail = trailOf(caller);
  if (trail === undefined) return decideAndCommit(decider, decide);
  trail.assertWritable();
  let decided: Decided<D>;
  try {
    decided = await decideAndCommit({ ...decider, authorOf }, authored(trail, decide));
  } catch (error) {
    await trail.failed(error);
    throw error;
  }
  await trail.done(decided);
  return decided;
}

/** The same for many. One that was committed without its line is answered with `AuditUnavailable`. */
export async function decideAllFor<D extends { readonly plan: Plan }>(
  decider: Decider,
  { caller }: { readonly caller: Caller },
  all: readonly Decide<D>[],
): Promise<readonly (Decided<D> | { readonly error: unknown })[]> {
  const trail = trailOf(caller);
  if (trail === undefined) return decideAllAndCommit(decider, all);
  trail.assertWritable();
  const trails = all.map(() => trail.branch());
  const decides = all.map((decide, i) => authored(trails[i] ?? trail, decide));
  const results = await decideAllAndCommit({ ...decider, authorOf }, decides);
  return Promise.all(
    results.map(async (result, i) => {
      const own = trails[i] ?? trail;
      try {
        await ('error' in result ? own.failed(result.error) : own.done(result));
        return result;
      } catch (error) {
        return { error };
      }
    }),
  );
}

function authored<D extends { readonly plan: Plan }>(trail: Trail, decide: Decide<D>): Decide<D> {
  return (snapshot, ctx, attempt) => {
    const decision = decide(snapshot, ctx, attempt);
    trail.decided(decision);
    return decision;
  };
}

/** The same decision, refused when the principal may not change its resource so. Throws `Forbidden`, or `NotFound`. */
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
