// warm-pool: keeps as many guests of a warm pool as size, schedule and budget say, and replaces those that failed, are too old or have a
// former template. warm-pools/pass.ts decides about the guests; here it becomes a Plan. A claimed guest is no guest of the pool any more.
//
//   created ──▶ ready ──▶ suspended, where the pool says so ──▶ claimed
//      └─ failed ─▶ replaced, later each time

import type { ApiError } from '../../../api/errors.ts';
import type { WarmPool, WarmPoolStatus } from '../../../api/resources/warm-pool.ts';
import { warmPoolLabel } from '../../../api/resources/warm-pool.ts';
import { equalJson } from '../../../base/equal-json.ts';
import { deleteInstance, replaceInstance } from '../../operations/instance.ts';
import { type MadeChanges, untilRefused } from '../../operations/instances/until-refused.ts';
import { newWarmGuest } from '../../operations/warm-pools/warm-pool.ts';
import { requestOf } from '../../scheduler/request.ts';
import { isDraining, type NewCondition, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { AnyRecord } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { instancesOf, uncommittedRemovals } from '../../state/views/workload-copies.ts';
import { type Fitting, fittingIn } from '../../warm-pools/budget.ts';
import { guestsOf, type WarmGuest } from '../../warm-pools/guests.ts';
import { type WarmPass, warmPassOf } from '../../warm-pools/pass.ts';
import { scheduledSize, untilNextMinuteMs } from '../../warm-pools/schedule.ts';
import { type Controller, keysOfKind, sleepMsMax } from '../controller.ts';

/** A project at its quota is looked at again this often. */
const quotaRetryMs = 5_000;
/** After a guest that failed; doubled for each in a row. */
const delayMsMin = 10_000;
const delayMsMax = 300_000;

export const warmPool: Controller = {
  name: 'warm-pool',
  watches: ['warmPool', 'instance', 'host'],
  *wakes({ key, kind, before, after }, snapshot) {
    if (kind === 'warmPool' && after !== null) yield key;
    for (const record of [before, after])
      if (record?.kind === 'instance' && record.status.warmPool)
        yield keys.warmPool(record.metadata.project, record.status.warmPool.name);
    if (kind === 'host' && isDrainedOf(before) !== isDrainedOf(after)) yield* keysOfKind(snapshot, 'warmPool');
  },
  keys: (snapshot) => keysOfKind(snapshot, 'warmPool'),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('warmPool', key);
    if (!entry) return emptyPlan;
    return entry.value.metadata.deletionRequestedAtMs === undefined
      ? keep(snapshot, entry, ctx)
      : remove(snapshot, entry, ctx);
  },
};

function isDrainedOf(record: AnyRecord | null): boolean {
  return record?.kind === 'host' && isDraining(record);
}

function keep(snapshot: Snapshot, entry: Entry<WarmPool>, ctx: Context): Plan {
  const { value } = entry;
  const { spec, metadata, status } = value;
  const guests = guestsOf(snapshot, value, ctx.nowMs);
  const size = scheduledSize(spec, ctx.nowMs);
  const asked = requestOf(snapshot, {
    metadata: { project: metadata.project, labels: { ...spec.template.labels, [warmPoolLabel]: metadata.name } },
    spec: spec.template.spec,
  });
  const fits = fittingIn(spec.budget, asked.assigned);
  const wanted = Math.min(size, fits.guests);
  const pass = warmPassOf({ guests, wanted, maySurge: fits.guests > wanted });
  const failures = failuresAfter(status.failures, guests, pass, ctx.nowMs);
  const waitMs = failures === undefined ? 0 : failures.atMs + delayOf(failures.count) - ctx.nowMs;
  const made = waitMs > 0 ? { changes: [], refusal: undefined } : created(snapshot, value, pass.create, ctx);
  const removing = new Set(pass.remove);
  const power = guests
    .filter((guest) => guest.otherPower && !guest.leaving && !removing.has(guest))
    .map(({ entry: guest }) => powered(snapshot, guest, spec.state, ctx));
  const refusal = made.refusal ?? power.find(({ refusal: why }) => why !== undefined)?.refusal;
  const { failures: _failures, ...kept } = status;
  const next: WarmPoolStatus = {
    ...kept,
    ...{ wanted, guests: pass.held, ready: pass.ready },
    ...(failures === undefined ? {} : { failures }),
    conditions: withConditions(
      status.conditions,
      [conditionNow(pass, { wanted, size, fits, refusal, waits: waitMs > 0 && pass.create > 0 })],
      ctx.nowMs,
    ),
  };
  const guestChanges = [
    ...made.changes,
    ...power.flatMap((each) => each.changes),
    ...pass.remove.flatMap((guest) => removed(snapshot, guest, ctx)),
  ];
  // Written also when it stays the same: two Plans that were decided on one count conflict here.
  const changes: Change[] =
    equalJson(next, status) && guestChanges.length === 0
      ? []
      : [{ key: entry.key, ifRevision: entry.revision, value: { ...value, status: next } }];
  if (failures !== undefined && failures.count !== status.failures?.count)
    changes.push(
      eventChange(
        value,
        { type: 'Warning', reason: 'GuestFailed', message: 'a guest failed before it was claimed' },
        ctx,
      ),
    );
  return {
    changes: [...changes, ...guestChanges],
    conditions: made.changes.length > 0 ? uncommittedRemovals(snapshot, metadata.id) : [],
    requeueAfterMs: Math.min(
      sleepMsMax,
      spec.schedule === undefined ? sleepMsMax : untilNextMinuteMs(ctx.nowMs),
      waitMs > 0 ? waitMs : sleepMsMax,
      refusal === undefined ? sleepMsMax : quotaRetryMs,
      ...guests.map((guest) => untilTooOld(guest, spec.maxAgeMs, ctx.nowMs)),
    ),
  };
}

/** Under a quota each has a Plan of its own. */
function created(snapshot: Snapshot, pool: WarmPool, count: number, ctx: Context): MadeChanges {
  const quota = snapshot.get('project', keys.project(pool.metadata.project))?.value.spec.quota;
  const length = quota === undefined ? count : Math.min(1, count);
  return untilRefused(Array.from({ length }), () => newWarmGuest(snapshot, pool, ctx));
}

/** A driver that suspends no guests refuses; the guest stays as it is. */
function powered(
  snapshot: Snapshot,
  { value: { metadata, spec } }: WarmGuest['entry'],
  powerState: WarmPool['spec']['state'],
  ctx: Context,
): MadeChanges {
  const { project, name, labels } = metadata;
  const replaced = { project, name, labels, spec: { ...spec, powerState } };
  return untilRefused([replaced], (input) => replaceInstance(snapshot, input, ctx).plan.changes);
}

function removed(snapshot: Snapshot, { entry: { value } }: WarmGuest, ctx: Context): readonly Change[] {
  const { project, name } = value.metadata;
  return deleteInstance(snapshot, { project, name }, ctx).plan.changes;
}

/** In a row: a guest that is ready ends it. */
function failuresAfter(
  known: WarmPoolStatus['failures'],
  guests: readonly WarmGuest[],
  { remove: removing }: WarmPass,
  nowMs: number,
): WarmPoolStatus['failures'] {
  if (removing.some(({ over, lost }) => over && !lost)) return { count: (known?.count ?? 0) + 1, atMs: nowMs };
  return guests.some(({ ready, stale }) => ready && !stale) ? undefined : known;
}

function delayOf(count: number): number {
  return Math.min(delayMsMax, delayMsMin * 2 ** Math.min(count - 1, 30));
}

function untilTooOld({ entry, stale }: WarmGuest, maxAgeMs: number | undefined, nowMs: number): number {
  if (maxAgeMs === undefined || stale) return sleepMsMax;
  return Math.max(1, entry.value.metadata.createdAtMs + maxAgeMs - nowMs);
}

interface Now {
  readonly wanted: number;
  readonly size: number;
  readonly fits: Fitting;
  readonly refusal: ApiError | undefined;
  readonly waits: boolean;
}

function conditionNow({ ready }: WarmPass, { wanted, size, fits, refusal, waits }: Now): NewCondition {
  const type = 'Ready';
  const limited = wanted < size ? `; the budget has no room for ${size}: ${fits.limit}` : '';
  if (refusal)
    return { type, status: 'False', reason: refusal.code, message: `a guest is refused: ${refusal.message}` };
  const message = `${ready} of ${wanted} guests are ready${limited}`;
  if (ready >= wanted) return { type, status: 'True', reason: limited === '' ? 'Ready' : 'Budget', message };
  if (waits) return { type, status: 'False', reason: 'GuestFailed', message: `${message}; the last one failed` };
  return { type, status: 'False', reason: 'Filling', message };
}

function remove(snapshot: Snapshot, { key, revision, value }: Entry<WarmPool>, ctx: Context): Plan {
  const { project, id } = value.metadata;
  const guests = instancesOf(snapshot, id);
  if (guests.length === 0)
    return {
      changes: [
        { key, ifRevision: revision, value: null },
        eventChange(value, { reason: 'Deleted', message: 'removed completely' }, ctx),
      ],
    };
  return {
    changes: guests.flatMap(({ value: { metadata } }) =>
      metadata.deletionRequestedAtMs === undefined
        ? deleteInstance(snapshot, { project, name: metadata.name }, ctx).plan.changes
        : [],
    ),
  };
}
