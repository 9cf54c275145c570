// What operators do with the drain of a host: show its plan, apply it by its hash, cancel it. The controller `drain` carries it out.

import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import { DrainOptions, type HostDrain, type HostPlan, type PlannedGuest } from '../../../api/plans/host-plan.ts';
import { equalJson } from '../../../base/equal-json.ts';
import { cancelledGuests } from '../../plans/cancelled-guests.ts';
import { guestsOfPlan, planHost, planKeptMs } from '../../plans/drain.ts';
import { withoutMarks } from '../../plans/eviction.ts';
import { differenceOf } from '../../plans/plan-difference.ts';
import type { Host } from '../../../api/resources/host.ts';
import { isDraining } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { hostClosed, hostOpened } from '../../plans/closing.ts';
import { keys } from '../../state/keys.ts';
import { type Change, type Plan, unchanged } from '../../state/plan.ts';
import type { HostPlanRecord } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { existing } from '../replace.ts';

export interface DrainInput {
  readonly host: string;
  readonly options: DrainOptions;
}

/** The plan is remembered, so that a later refusal can say what has changed since. */
export function showDrainPlan(
  snapshot: Snapshot,
  { host, options }: DrainInput,
  ctx: Context,
): { readonly plan: Plan; readonly shown: HostPlan } {
  const shown = planHost(snapshot, { verb: 'drain', host, options }, ctx);
  return { plan: { changes: remembered(snapshot, shown, ctx) }, shown };
}

/** A drain that is under way is kept, and a plan that is the same and young. */
export function remembered(snapshot: Snapshot, shown: HostPlan, ctx: Context): Change[] {
  const key = keys.hostPlan(shown.host);
  const known = snapshot.get('hostPlan', key);
  if (known && isActive(known.value)) return [];
  if (known?.value.hash === shown.hash && ctx.nowMs - known.value.madeAtMs < planKeptMs / 2) return [];
  const ended = known?.value.phase === 'Drained' || known?.value.phase === 'Incomplete';
  if (ended && known.value.hostId === shown.hostId) return []; // it keeps the host closed, and says how that went
  const { verb, host, hostId, hash, options, madeAtMs, guests } = shown;
  return [
    {
      key,
      ifRevision: known?.revision ?? 0,
      value: { kind: 'hostPlan', phase: 'Planned', verb, host, hostId, hash, options, madeAtMs, guests },
    },
  ];
}

/** Throws `Conflict` when the hash is of another plan, saying what differs, and when another drain is under way. */
export function beginDrain(
  snapshot: Snapshot,
  { host, options, hash }: DrainInput & { readonly hash: string },
  ctx: Context,
): { readonly plan: Plan; readonly begun: HostDrain } {
  const key = keys.hostPlan(host);
  const known = snapshot.get('hostPlan', key);
  existing(snapshot, 'host', keys.host(host));
  if (known && isActive(known.value)) {
    if (known.value.hash === hash) return { plan: unchanged(known), begun: shownDrain(known.value) };
    throw new ApiError(
      'Conflict',
      `host "${host}" is being drained by another plan; "berth host drain ${host} --cancel" ends it`,
      {
        field: 'apply',
      },
    );
  }
  const now = guestsOfPlan(snapshot, { verb: 'drain', host, options });
  assertPlan(known?.value, { host, hash, options, now }, ctx);
  const { hostId, guests } = now;
  const { changes, drain } = startedDrain(snapshot, { host, hostId, guests, options, hash }, ctx);
  return { plan: { changes }, begun: drain };
}

interface Started extends DrainInput {
  readonly hostId: string;
  readonly hash: string;
  readonly guests: readonly PlannedGuest[];
}

/** Closes the host and begins with these guests. */
export function startedDrain(
  snapshot: Snapshot,
  { host, hostId, hash, options, guests }: Started,
  ctx: Context,
): { readonly changes: readonly Change[]; readonly drain: HostDrain } {
  const key = keys.hostPlan(host);
  const known = snapshot.get('hostPlan', key);
  const record = existing(snapshot, 'host', keys.host(host));
  const begun: HostPlanRecord = {
    ...{ kind: 'hostPlan', verb: 'drain', host, hostId, hash, options, phase: 'Draining' },
    ...{ madeAtMs: known?.value.hash === hash ? known.value.madeAtMs : ctx.nowMs },
    ...{ startedAtMs: ctx.nowMs, deadlineAtMs: ctx.nowMs + options.deadlineMs },
    guests: guests.map((guest) => ({ ...guest, progress: beginsAs(guest) })),
  };
  const message = `it is being drained: ${guests.length} to look after; nothing new is placed here`;
  return {
    changes: [
      hostClosed(record, message, ctx),
      { key, ifRevision: known?.revision ?? 0, value: begun },
      eventChange(record.value, { reason: 'Draining', message, host }, ctx),
    ],
    drain: shownDrain(begun),
  };
}

function beginsAs({ action }: PlannedGuest): 'waiting' | 'done' | 'left' {
  if (action === 'rests') return 'done';
  return action === 'stays' ? 'left' : 'waiting';
}

interface Asked extends DrainInput {
  readonly hash: string;
  readonly now: { readonly hash: string; readonly guests: readonly PlannedGuest[] };
}

export function assertPlan(known: HostDrain | undefined, { host, hash, options, now }: Asked, ctx: Context): void {
  if (hash !== now.hash) {
    const shown = known?.hash === hash ? known : undefined;
    const difference = shown
      ? equalJson(shown.options, options)
        ? differenceOf(shown.guests, now.guests)
        : ['the options are others than those of the plan']
      : ['that plan is not known'];
    const some = difference.slice(0, 3).join('; ');
    const more = difference.length > 3 ? `; and ${difference.length - 3} more` : '';
    throw new ApiError(
      'Conflict',
      `the plan of host "${host}" is no longer as it was shown: ${some}${more}; look at the plan again`,
      {
        field: 'apply',
        details: { difference: difference.slice(0, 100), hash: now.hash },
      },
    );
  }
  if (known?.hash === hash && known.phase === 'Planned' && ctx.nowMs - known.madeAtMs > planKeptMs)
    throw new ApiError('Conflict', `the plan of host "${host}" was shown too long ago; look at the plan again`, {
      field: 'apply',
    });
}

/** Moves that have not committed end, and what has left does not return; the host is open again. */
export function cancelDrain(
  snapshot: Snapshot,
  host: string,
  ctx: Context,
): { readonly plan: Plan; readonly ended: HostDrain } {
  const record = existing(snapshot, 'host', keys.host(host));
  const begun = beginningOf(snapshot, host);
  if (!begun && isDraining(record.value)) return opened(record, ctx);
  const entry = drainOf(snapshot, host);
  if (entry.value.phase === 'Cancelled') return { plan: unchanged(entry), ended: shownDrain(entry.value) };
  // The moves of a drain that has ended belong to the user again.
  const { guests, changes } = isActive(entry.value)
    ? cancelledGuests(snapshot, entry.value, ctx)
    : { guests: entry.value.guests, changes: [] };
  const ended: HostPlanRecord = { ...entry.value, guests: [...guests], phase: 'Cancelled', endedAtMs: ctx.nowMs };
  const { plan } = opened(record, ctx);
  return {
    plan: {
      changes: [
        ...plan.changes,
        { key: entry.key, ifRevision: entry.revision, value: ended },
        ...withoutMarks(snapshot, ended.guests),
        ...changes,
      ],
    },
    ended: shownDrain(ended),
  };
}

/** Without its drain, which a restore from a backup leaves out. */
function opened(record: Entry<Host>, ctx: Context): { readonly plan: Plan; readonly ended: HostDrain } {
  const { metadata, spec } = record.value;
  const { name: host, id: hostId } = metadata;
  const message = `its drain was cancelled; ${spec.paused ? 'it stays paused' : 'it takes new instances again'}`;
  const options = parse(DrainOptions, {}, 'options');
  return {
    plan: {
      changes: [
        hostOpened(record, message, ctx),
        eventChange(record.value, { reason: 'DrainCancelled', message, host }, ctx),
      ],
    },
    ended: {
      ...{ verb: 'drain', host, hostId, hash: '', options, phase: 'Cancelled', madeAtMs: ctx.nowMs },
      ...{ endedAtMs: ctx.nowMs, guests: [] },
    },
  };
}

/** Throws `NotFound` when the host was never drained, or only planned to be. */
export function drainOf(snapshot: Snapshot, host: string): Entry<HostPlanRecord> {
  const entry = beginningOf(snapshot, host);
  if (entry) return entry;
  throw new ApiError('NotFound', `host "${host}" is not drained; "berth host drain ${host}" shows a plan`);
}

/** Of the host that now has this name. */
function beginningOf(snapshot: Snapshot, host: string): Entry<HostPlanRecord> | undefined {
  const hostId = snapshot.get('host', keys.host(host))?.value.metadata.id;
  const entry = snapshot.get('hostPlan', keys.hostPlan(host));
  return entry && entry.value.hostId === hostId && entry.value.phase !== 'Planned' ? entry : undefined;
}

export function isActive({ phase }: HostDrain): boolean {
  return phase === 'Draining';
}

export function shownDrain({ kind: _, ...drain }: HostPlanRecord): HostDrain {
  return drain;
}
