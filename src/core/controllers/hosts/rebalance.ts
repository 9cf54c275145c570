// rebalance: at the times of a pool, makes the plan to use fewer of its hosts, and shows it or begins it. Each time is decided on once; the
// decision and its number are one Plan, so that no crash and no second control plane begins a plan twice.

import { ApiError } from '../../../api/errors.ts';
import type { RebalancePlan } from '../../../api/plans/rebalance.ts';
import { hostStateName } from '../../../api/resources/host-state.ts';
import type { Pool } from '../../../api/resources/pool.ts';
import {
  type PoolRebalance,
  type PoolRebalanceStatus,
  rebalanceOptionsOf,
} from '../../../api/resources/pool-rebalance.ts';
import { beginRebalance } from '../../operations/plans/rebalance.ts';
import { planRebalance } from '../../plans/rebalance.ts';
import type { Context } from '../../state/context.ts';
import { eventChange, type NewEvent } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { lastScheduledTime, nextScheduledTimeMs, type ScheduledTime } from '../../times/scheduled-times.ts';
import { type Controller, untilNextTimeMs } from '../controller.ts';

/** A plan for the night is not made up in the morning. */
const lateMsMax = 600_000;

export const rebalance: Controller = {
  name: 'rebalance',
  watches: ['pool'],
  *wakes({ key, after }) {
    if (after?.kind === 'pool' && after.spec.rebalance !== undefined) yield key;
  },
  *keys(snapshot) {
    for (const { key, value } of snapshot.list('pool')) if (value.spec.rebalance !== undefined) yield key;
  },
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('pool', key);
    const schedule = entry?.value.spec.rebalance;
    if (!entry || schedule === undefined || schedule.paused) return emptyPlan;
    return onSchedule(snapshot, { entry, schedule }, ctx);
  },
};

interface Scheduled {
  readonly entry: Entry<Pool>;
  readonly schedule: PoolRebalance;
}

function onSchedule(snapshot: Snapshot, { entry, schedule }: Scheduled, ctx: Context): Plan {
  const { key, revision, value } = entry;
  const known = value.status.rebalance;
  const time = lastScheduledTime(schedule, ctx.nowMs);
  const nextMs = nextScheduledTimeMs(schedule, ctx.nowMs);
  const requeueAfterMs = untilNextTimeMs(nextMs, ctx.nowMs);
  if (time === undefined || time.number <= (known?.handled ?? 0)) return { changes: [], requeueAfterMs };
  const { changes, event, last } = outcomeOf(snapshot, { entry, schedule, time }, ctx);
  const status: PoolRebalanceStatus = {
    handled: time.number,
    ...(nextMs === undefined ? {} : { nextMs }),
    last: { atMs: time.atMs, ...last },
  };
  const shown = known?.last?.hash !== undefined && known.last.hash === last.hash; // one event for one plan
  return {
    changes: [
      { key, ifRevision: revision, value: { ...value, status: { ...value.status, rebalance: status } } },
      ...changes,
      ...(event === undefined || (shown && last.outcome === 'Suggested') ? [] : [eventChange(value, event, ctx)]),
    ],
    requeueAfterMs,
  };
}

type Last = Omit<NonNullable<PoolRebalanceStatus['last']>, 'atMs'>;

interface Outcome {
  readonly changes: readonly Change[];
  readonly last: Last;
  readonly event?: NewEvent;
}

function outcomeOf(
  snapshot: Snapshot,
  { entry: { value }, schedule, time }: Scheduled & { readonly time: ScheduledTime },
  ctx: Context,
): Outcome {
  const { name } = value.metadata;
  const refusal = whyNotNow(snapshot, { pool: name, lateMs: ctx.nowMs - time.atMs });
  if (refusal !== undefined) return skipped(refusal);
  const options = rebalanceOptionsOf(name, schedule);
  const plan = planRebalance(snapshot, options, ctx);
  const hosts = plan.hosts.map(({ host }) => host);
  if (hosts.length === 0)
    return { changes: [], last: { outcome: 'Nothing', message: 'no host can be emptied', hosts, moves: 0 } };
  const about = { hash: plan.hash, hosts, moves: plan.moves };
  if (schedule.mode === 'suggest') {
    const message = `${gainOf(plan)}: "berth rebalance show ${name}" shows the plan`;
    const event = { reason: 'RebalanceSuggested', message };
    return { changes: [], last: { outcome: 'Suggested', message, ...about }, event };
  }
  try {
    const { changes } = beginRebalance(snapshot, { options, hash: plan.hash }, ctx).plan;
    const message = `the schedule begins plan ${plan.hash}: ${gainOf(plan)}`;
    return { changes, last: { outcome: 'Started', message, ...about }, event: { reason: 'RebalanceStarted', message } };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return skipped(error.message.slice(0, 1_000));
  }
}

function skipped(message: string): Outcome {
  return {
    changes: [],
    last: { outcome: 'Skipped', message, hosts: [], moves: 0 },
    event: { type: 'Warning', reason: 'RebalanceSkipped', message },
  };
}

function gainOf({ moves, hosts, inUse }: RebalancePlan): string {
  const names = hosts.map(({ host }) => host).join(', ');
  return `${moves === 1 ? 'one move empties' : `${moves} moves empty`} ${hosts.length} of ${inUse.before} hosts in use (${names})`;
}

/** Moves of the last plan count on the room that they take, and guests of a host that is not connected may need that room. */
function whyNotNow(
  snapshot: Snapshot,
  { pool, lateMs }: { readonly pool: string; readonly lateMs: number },
): string | undefined {
  if (lateMs > lateMsMax) return `it was missed by ${Math.floor(lateMs / 60_000)} min, and is not made up`;
  for (const { value } of snapshot.list('host')) {
    const { metadata, spec, status } = value;
    if ((spec.pool ?? 'default') !== pool || status.outside) continue;
    const drained = snapshot.get('hostPlan', keys.hostPlan(metadata.name))?.value;
    if (drained?.phase === 'Draining' && drained.hostId === metadata.id)
      return `host ${metadata.name} is being drained: its moves have not ended`;
    const state = hostStateName(value);
    if (state === 'Unknown' || state === 'Down') return `host ${metadata.name} is ${state}`;
  }
  return undefined;
}
