// Dry run: what a create would make, decided like any other and never committed; of an instance also where it would go, or why nowhere.

import type { AnyResource, Kind } from '../../../api/resources/index.ts';
import type { Effects } from '../../../api/plans/effects.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { effectsOf, effectsWithoutNames, isUsed } from '../../../core/plans/effects/effects.ts';
import type { Decision } from '../../../core/operations/decision.ts';
import { explainInSteps } from '../../../core/explain/explain.ts';
import type { Context } from '../../../core/state/context.ts';
import type { AnyRecord } from '../../../core/state/records.ts';
import type { Snapshot } from '../../../core/state/snapshot.ts';
import { contextOf, type Decider } from '../../decide.ts';
import { inSlices } from '../../in-slices.ts';
import type { Caller } from '../caller.ts';
import type { Answer } from '../route.ts';
import { isResource } from './present.ts';
import { explanationSeenBy, knowsNames, seesAll, visibleTo } from './visible.ts';

type Decide = (snapshot: Snapshot, ctx: Context, attempt: number) => Decision;

/** What a replace would leave, without the questions of placement; with what it affects. */
export function dryRunOfChange(kind: Kind, decider: Decider, { principal }: Caller, decide: Decide): Answer {
  const { cache } = decider;
  const decision = decide(cache, contextOf(decider), 0);
  const resource = plannedBy(kind, decider, decision);
  if (!isResource(resource)) return { status: 200, json: resource };
  const seen = visibleTo(principal, cache)(resource, 'one');
  const before = cache.get(kind, decision.key)?.value;
  return { status: 200, json: before ? { ...seen, ...effectsSeen(decider, principal, before, resource) } : seen };
}

/** What is there, and what its deletion would affect. */
export function dryRunOfDelete(decider: Decider, { principal }: Caller, before: AnyResource): Answer {
  const seen = visibleTo(principal, decider.cache)(before, 'one');
  return { status: 200, json: { ...seen, ...effectsSeen(decider, principal, before, undefined) } };
}

function effectsSeen(
  { cache, policy }: Decider,
  principal: Principal,
  before: AnyResource,
  after: AnyResource | undefined,
): { readonly effects?: Effects } {
  if (!isUsed(before) || (after && !isUsed(after))) return {};
  const effects = effectsOf(cache, { before, after }, policy);
  return { effects: seesAll(principal) ? effects : effectsWithoutNames(effects, knowsNames(principal, cache)) };
}

function plannedBy(kind: Kind, { cache }: Decider, { plan, key }: Decision): AnyRecord | null | undefined {
  return plan.changes.find((change) => change.key === key)?.value ?? cache.get(kind, key)?.value;
}

export async function dryRun(
  kind: Kind,
  decider: Decider,
  query: { readonly limit: number; readonly continue: number; readonly caller: Caller },
  decide: (ctx: Context) => Decision,
): Promise<Answer> {
  const planned = plannedBy(kind, decider, decide(contextOf(decider)));
  const { principal } = query.caller;
  const seen = (resource: AnyResource): AnyResource => visibleTo(principal, decider.cache)(resource, 'one');
  if (planned?.kind !== 'instance')
    return { status: 200, json: planned && isResource(planned) ? seen(planned) : planned };
  const steps = explainInSteps(decider.cache, planned, {
    limit: query.limit,
    offset: query.continue,
    nowMs: decider.clock.nowMs(),
    policy: decider.policy,
  });
  const explained = explanationSeenBy(principal, decider.cache);
  return { status: 200, json: { ...seen(planned), explanation: explained(await inSlices(decider.clock, steps)) } };
}
