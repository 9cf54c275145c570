// Leadership: one control plane at a time runs the controllers, to save work. Correctness does not depend on there being only one: the
// leader's Plans have its term as a condition, so that its decisions are refused once another control plane has taken over.
//
//   no leader ── take ──▶ leader of term 1 ── renew, renew, … ── resign ──▶ no leader
//                             │ silent for the length of the lease                │
//                             └────────────── another takes: term 2 ◀────────────┘

import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';

/** Begins a new term, whichever control plane led before. */
export function takeLeadership(
  snapshot: Snapshot,
  holder: string,
  ctx: Context,
): { readonly plan: Plan; readonly term: number } {
  const leader = snapshot.get('leader', keys.leader);
  const term = (leader?.value.term ?? 0) + 1;
  return {
    plan: {
      changes: [
        { key: keys.leader, ifRevision: leader?.revision ?? 0, value: { kind: 'leader', holder, term } },
        leaseChange(snapshot, term, ctx),
      ],
    },
    term,
  };
}

/** Renews the lease of the leader of `term`; refused when the term has ended. */
export function renewLeadership(
  snapshot: Snapshot,
  fence: { readonly key: string; readonly ifRevision: number },
  { term }: { readonly term: number },
  ctx: Context,
): { readonly plan: Plan } {
  return { plan: { changes: [leaseChange(snapshot, term, ctx)], conditions: [fence] } };
}

/**
 * Resigns, so that another control plane need not wait for the lease to expire. Changes nothing when another leads
 * already.
 */
export function endLeadership(snapshot: Snapshot, { term }: { readonly term: number }): { readonly plan: Plan } {
  return snapshot.get('leader', keys.leader)?.value.term === term ? endAnyLeadership(snapshot) : { plan: emptyPlan };
}

/** The same for whichever control plane leads, when it cannot write any more. */
export function endAnyLeadership(snapshot: Snapshot): { readonly plan: Plan } {
  const leader = snapshot.get('leader', keys.leader);
  if (!leader || leader.value.holder === '') return { plan: emptyPlan };
  return {
    plan: { changes: [{ key: keys.leader, ifRevision: leader.revision, value: { ...leader.value, holder: '' } }] },
  };
}

function leaseChange(snapshot: Snapshot, term: number, ctx: Context): Change {
  const lease = snapshot.get('leaderLease', keys.leaderLease);
  return {
    key: keys.leaderLease,
    ifRevision: lease?.revision ?? 0,
    value: { kind: 'leaderLease', term, renewedAtMs: ctx.nowMs },
  };
}
