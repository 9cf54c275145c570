// What operators do with pools, besides what all plain resources have in common: the schedule of a pool's rebalances.

import type { Pool, PoolSpec, PoolStatus } from '../../api/resources/pool.ts';
import { equalJson } from '../../base/equal-json.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { assertCron, assertTimeZone } from '../times/assert-times.ts';
import { scheduleFrom } from '../times/scheduled-times.ts';
import type { CreateInput } from './create.ts';
import type { Decision } from './decision.ts';
import { createPlainResource, replacePlainResource } from './plain-resource.ts';
import type { ReplaceInput } from './replace.ts';

export function createPool(snapshot: Snapshot, input: CreateInput<PoolSpec>, ctx: Context): Decision {
  assertRebalance(input.spec);
  return withStatus(createPlainResource(snapshot, 'pool', input, ctx), () => statusOf(input.spec, {}, ctx));
}

export function replacePool(snapshot: Snapshot, input: ReplaceInput<PoolSpec>, ctx: Context): Decision {
  assertRebalance(input.spec);
  const before = snapshot.get('pool', keys.pool(input.name))?.value;
  return withStatus(replacePlainResource(snapshot, 'pool', input), ({ spec }) => {
    const status = before?.status ?? {};
    const same = equalJson(before?.spec.rebalance ?? null, spec.rebalance ?? null);
    return same ? status : statusOf(spec, status, ctx);
  });
}

/** A changed schedule begins now: times before are not made up. */
function statusOf({ rebalance }: PoolSpec, { rebalance: before }: PoolStatus, { nowMs }: Context): PoolStatus {
  if (rebalance === undefined) return {};
  const { handled, nextMs } = scheduleFrom(rebalance, nowMs);
  return {
    rebalance: {
      handled,
      ...(nextMs === undefined || rebalance.paused ? {} : { nextMs }),
      ...(before?.last === undefined ? {} : { last: before.last }),
    },
  };
}

function withStatus(decision: Decision, statusFor: (pool: Pool) => PoolStatus): Decision {
  const changes = decision.plan.changes.map((change) => {
    const { value } = change;
    return value?.kind === 'pool' ? { ...change, value: { ...value, status: statusFor(value) } } : change;
  });
  return { ...decision, plan: { ...decision.plan, changes } };
}

function assertRebalance({ rebalance }: PoolSpec): void {
  if (rebalance === undefined) return;
  assertTimeZone(rebalance.timeZone, 'spec.rebalance.timeZone');
  assertCron(rebalance.cron, 'spec.rebalance.cron');
}
