// What operators do with the maintenance of several hosts: show its plan, apply it by its hash, pause it, resume it, cancel it. The controller
// `roll` carries it out.

import { ApiError } from '../../../api/errors.ts';
import type { HostRoll, RollingHost, RollOptions } from '../../../api/plans/host-roll.ts';
import { hostOpened } from '../../plans/closing.ts';
import { planRoll } from '../../plans/roll.ts';
import { isDraining } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import { type Change, type Plan, unchanged } from '../../state/plan.ts';
import type { HostRollRecord } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { cancelDrain } from './host-drain.ts';

interface Decided {
  readonly plan: Plan;
  readonly roll: HostRoll;
}

/** Throws `Conflict` when the hash is of another plan, when another roll is under way, and when no host could be emptied. */
export function beginRoll(
  snapshot: Snapshot,
  { options, hash }: { readonly options: RollOptions; readonly hash: string },
  ctx: Context,
): Decided {
  const known = snapshot.get('hostRoll', keys.hostRoll);
  if (known && isUnderWay(known.value)) {
    if (known.value.hash === hash) return { plan: unchanged(known), roll: shownRoll(known.value) };
    throw new ApiError('Conflict', 'another roll is under way; "berth host roll --cancel" ends it', { field: 'apply' });
  }
  const now = planRoll(snapshot, options, ctx);
  if (now.hash !== hash)
    throw new ApiError(
      'Conflict',
      `the plan is no longer as it was shown: now ${now.hosts.length} hosts are in it and ${now.blocked.length} are left out, or other guests are interrupted; look at the plan again`,
      { field: 'apply', details: { hash: now.hash } },
    );
  if (now.hosts.length === 0)
    throw new ApiError('Conflict', 'the plan has no host that can be emptied', { field: 'apply' });
  const begun: HostRollRecord = {
    ...{ kind: 'hostRoll', hash, options, phase: 'Rolling', startedAtMs: ctx.nowMs },
    hosts: now.hosts.map(({ guests: _, ...host }): RollingHost => ({ ...host, step: 'waiting' })),
  };
  const change = { key: keys.hostRoll, ifRevision: known?.revision ?? 0, value: begun };
  return { plan: { changes: [change] }, roll: shownRoll(begun) };
}

/** A roll that may go on: also one that has failed. */
export function isUnderWay({ phase }: HostRoll): boolean {
  return phase === 'Rolling' || phase === 'Paused' || phase === 'Failed';
}

/** Throws `NotFound` when there has been none. */
export function rollOf(snapshot: Snapshot): Entry<HostRollRecord> {
  const entry = snapshot.get('hostRoll', keys.hostRoll);
  if (entry) return entry;
  throw new ApiError('NotFound', 'there is no roll; "berth host roll --pool POOL" shows a plan');
}

/** Hosts that are in maintenance go on. Resuming a roll that has failed repeats the step that has failed. Throws `Conflict` after the end. */
export function pauseRoll(snapshot: Snapshot, paused: boolean, ctx: Context): Decided {
  const entry = rollOf(snapshot);
  const { value } = entry;
  if (!isUnderWay(value))
    throw new ApiError(
      'Conflict',
      `the roll is ${value.phase}; "berth host roll --pool POOL" shows the plan of another`,
    );
  const phase = paused ? (value.phase === 'Failed' ? 'Failed' : 'Paused') : 'Rolling';
  if (phase === value.phase) return { plan: unchanged(entry), roll: shownRoll(value) };
  const hosts = phase === 'Rolling' ? value.hosts.map((host) => repeated(host, ctx)) : value.hosts;
  return changed(entry, { ...value, phase, hosts });
}

/** An order is carried out once, and a restore that has ended is planned again: both begin with another id. */
function repeated(host: RollingHost, ctx: Context): RollingHost {
  const { failedIn, message: _message, restoreHash: _restore, order, ...kept } = host;
  if (host.step !== 'failed' || failedIn === undefined) return host;
  const next = failedIn === 'maintenance' && order !== undefined ? { order: ctx.newId('order') } : {};
  return { ...kept, ...next, step: failedIn === 'draining' ? 'waiting' : failedIn, sinceMs: ctx.nowMs };
}

/** Harmless a second time. Hosts that are not done are opened; restores that have begun continue. */
export function cancelRoll(snapshot: Snapshot, ctx: Context): Decided {
  const entry = rollOf(snapshot);
  const { value } = entry;
  if (!isUnderWay(value)) return { plan: unchanged(entry), roll: shownRoll(value) };
  const changes: Change[] = [];
  const hosts = value.hosts.map((host): RollingHost => {
    if (host.step === 'done') return host;
    changes.push(...openedAgain(snapshot, host, ctx));
    return { ...host, step: 'left' };
  });
  const ended = changed(entry, { ...value, hosts, phase: 'Cancelled', endedAtMs: ctx.nowMs });
  return { ...ended, plan: { changes: [...ended.plan.changes, ...changes] } };
}

function openedAgain(snapshot: Snapshot, rolling: RollingHost, ctx: Context): readonly Change[] {
  const { host, hostId, step, failedIn } = rolling;
  const at = step === 'failed' ? failedIn : step;
  if (at !== 'draining' && at !== 'maintenance') return [];
  const record = snapshot.get('host', keys.host(host));
  if (record?.value.metadata.id !== hostId || !isDraining(record.value)) return [];
  const drain = snapshot.get('hostPlan', keys.hostPlan(host))?.value;
  return drain?.hostId === hostId && drain.phase !== 'Planned'
    ? cancelDrain(snapshot, host, ctx).plan.changes
    : [hostOpened(record, 'its roll was cancelled', ctx)];
}

function changed({ key, revision }: Entry<HostRollRecord>, value: HostRollRecord): Decided {
  return { plan: { changes: [{ key, ifRevision: revision, value }] }, roll: shownRoll(value) };
}

export function shownRoll({ kind: _, ...roll }: HostRollRecord): HostRoll {
  return roll;
}
