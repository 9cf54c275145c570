// Changes of a workload as plans: a dry run shows the plan, and a change by its hash is refused when the plan is another.

import { fieldChanges } from '../../../../api/field-changes.ts';
import type { RolloutPlan } from '../../../../api/plans/rollout-plan.ts';
import type { Workload } from '../../../../api/resources/workload.ts';
import { assertMayOn, notFound } from '../../../../core/access/may.ts';
import type { Decision } from '../../../../core/operations/decision.ts';
import { planRollout, rolloutText } from '../../../../core/plans/rollout.ts';
import { assertWorkloadPlan } from '../../../../core/plans/workload-hash.ts';
import type { Context } from '../../../../core/state/context.ts';
import type { Snapshot } from '../../../../core/state/snapshot.ts';
import { contextOf, type Decider } from '../../../decide.ts';
import type { Caller } from '../../caller.ts';
import type { Answer } from '../../route.ts';
import { visibleTo } from '../visible.ts';
import { hiddenValue, withoutSecrets } from '../without-secrets.ts';

type Verb = RolloutPlan['verb'];
type Decide = (snapshot: Snapshot, ctx: Context, attempt: number) => Decision;

/** What this decision means for the copies; undefined: it is about no workload that exists. */
export function rolloutOf(verb: Verb, snapshot: Snapshot, { key, plan }: Decision, nowMs: number) {
  const before = snapshot.get('workload', key)?.value;
  if (!before) return undefined;
  const changed = plan.changes.find((change) => change.key === key)?.value;
  const after = changed?.kind === 'workload' ? changed : before;
  return {
    ...{ before, after },
    shown: planRollout(snapshot, { verb, before, after, changes: shownChanges(before, after) }, nowMs),
  };
}

/** The same decision, refused when its plan is not that of the hash. */
export function byHash(verb: Verb, apply: string | undefined, decide: Decide): Decide {
  if (apply === undefined) return decide;
  return (snapshot, ctx, attempt) => {
    const decision = decide(snapshot, ctx, attempt);
    const rollout = rolloutOf(verb, snapshot, decision, ctx.nowMs);
    if (rollout) {
      const { before: workload, shown } = rollout;
      assertWorkloadPlan(apply, { verb, workload, hash: shown.hash, copiesText: rolloutText(shown) });
    }
    return decision;
  };
}

/** The workload as it would be, with the plan. Throws what the change would throw. */
export function dryRunOfRollout(verb: Verb, decider: Decider, { principal }: Caller, decide: Decide): Answer {
  const { cache } = decider;
  const ctx = contextOf(decider);
  const decision = decide(cache, ctx, 0);
  const rollout = rolloutOf(verb, cache, decision, ctx.nowMs);
  if (!rollout) throw notFound('workload', decision.key);
  assertMayOn(cache, principal, 'read', rollout.before); // the plan says what is in its template
  const seen = visibleTo(principal, cache)(rollout.after, verb === 'undo' ? 'several' : 'one');
  return { status: 200, json: { ...seen, rollout: rollout.shown } };
}

/** Of the labels and the spec. A hidden value that changes is named, and not shown. */
function shownChanges(before: Workload, after: Workload): RolloutPlan['changes'] {
  const seen = fieldChanges(asSeen(withoutSecrets(before)), asSeen(withoutSecrets(after)));
  const shown = new Map(seen.map((change) => [change.field, change]));
  return fieldChanges(asSeen(before), asSeen(after)).map(
    ({ field }) => shown.get(field) ?? { field, before: hiddenValue, after: hiddenValue },
  );
}

function asSeen({
  metadata: { labels },
  spec,
}: Pick<Workload, 'metadata' | 'spec'> | ReturnType<typeof withoutSecrets>) {
  return { labels, ...spec };
}
