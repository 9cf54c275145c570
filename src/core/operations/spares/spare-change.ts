// What every step of a spare writes: its status, a condition, and an event, which receivers of news get.

import type { Spare, SpareStatus } from '../../../api/resources/spare.ts';
import type { Task } from '../../../api/resources/task.ts';
import { fingerprint } from '../../../base/hash.ts';
import { withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { releaseTask } from '../task.ts';

export interface SpareNews {
  readonly reason: string;
  readonly message: string;
  readonly isWarning?: boolean;
  /** Not worth an event: it changes often. */
  readonly isProgress?: boolean;
}

const messageMax = 1_024;

/** Nothing when it says what was said. */
export function spareChange(
  entry: Entry<Spare>,
  status: SpareStatus,
  news: SpareNews,
  ctx: Context,
): readonly Change[] {
  const message = news.message.slice(0, messageMax);
  const ready = status.phase === 'Ready' ? 'True' : 'False';
  const condition = { type: 'Ready', status: ready, reason: news.reason, message } as const;
  const value: Spare = {
    ...entry.value,
    status: { ...status, conditions: withConditions(status.conditions, [condition], ctx.nowMs) },
  };
  const change = { key: entry.key, ifRevision: entry.revision, value };
  if (news.isProgress) return [change];
  const type = news.isWarning ? 'Warning' : 'Normal';
  const host = status.host === undefined ? {} : { host: status.host };
  return [change, eventChange(entry.value, { type, reason: news.reason, message, ...host }, ctx)];
}

/** Of the task that holds its room. */
export function taskNameOf(spareId: string): string {
  return `spare-${fingerprint(spareId)}`;
}

export function taskOf(snapshot: Snapshot, { metadata: { project, id }, status }: Spare): Entry<Task> | undefined {
  const entry = snapshot.get('task', keys.task(project, taskNameOf(id)));
  return entry?.value.metadata.id === status.task ? entry : undefined;
}

/** Of its task; the room of an instance goes with the instance. */
export function releaseRoomOf(snapshot: Snapshot, spare: Spare, ctx: Context): readonly Change[] {
  const task = taskOf(snapshot, spare);
  if (!task) return [];
  return releaseTask(snapshot, { key: task.key, id: task.value.metadata.id }, ctx).plan.changes;
}

/** Before another step: no attempt of it has begun. */
export function withoutStep({
  attemptAtMs: _at,
  nextAttemptAtMs: _next,
  claimedTerm: _term,
  ...status
}: SpareStatus): SpareStatus {
  return { ...status, attempt: 0 };
}

/** It is over: what was made of it is undone, or nothing was made. */
export function ended(snapshot: Snapshot, entry: Entry<Spare>, ctx: Context): readonly Change[] {
  const { failure } = entry.value.status;
  const status = { ...withoutStep(entry.value.status), endedAtMs: ctx.nowMs };
  const change =
    failure === undefined
      ? spareChange(entry, { ...status, phase: 'Released' }, { reason: 'Released', message: 'it was released' }, ctx)
      : spareChange(
          entry,
          { ...status, phase: 'Failed' },
          { reason: 'Failed', message: failure, isWarning: true },
          ctx,
        );
  return [...change, ...releaseRoomOf(snapshot, entry.value, ctx)];
}

/** What was made of it is undone, because of `failure`, or because its time is over. */
export function releasing(
  entry: Entry<Spare>,
  { reason, message, isWarning }: SpareNews,
  ctx: Context,
): readonly Change[] {
  const status: SpareStatus = {
    ...withoutStep(entry.value.status),
    phase: 'Releasing',
    ...(isWarning ? { failure: message.slice(0, messageMax) } : {}),
  };
  return spareChange(entry, begun(status, ctx), { reason, message, ...(isWarning ? { isWarning } : {}) }, ctx);
}

/** The next attempt of its step is written before it begins. */
export function begun(
  { nextAttemptAtMs: _next, claimedTerm: _term, ...status }: SpareStatus,
  ctx: Context,
): SpareStatus {
  return { ...status, attempt: status.attempt + 1, attemptAtMs: ctx.nowMs };
}

export function provisioned(
  entry: Entry<Spare>,
  { address, name }: { readonly address?: string; readonly name?: string },
  ctx: Context,
): readonly Change[] {
  const { spec, status } = entry.value;
  const known: SpareStatus = {
    ...withoutStep(status),
    ...(address === undefined ? {} : { address }),
    ...(name === undefined ? {} : { name }),
    provisionedAtMs: ctx.nowMs,
  };
  if (spec.ready === undefined) return ready(entry, known, 'it is provisioned', ctx);
  const news = { reason: 'Provisioned', message: 'it is provisioned; waiting until it is ready' };
  return spareChange(entry, begun({ ...known, phase: 'Checking' }, ctx), news, ctx);
}

/** Receivers of news are told by the event. */
export function ready(entry: Entry<Spare>, status: SpareStatus, message: string, ctx: Context): readonly Change[] {
  const held: SpareStatus = {
    ...withoutStep(status),
    phase: 'Ready',
    readyAtMs: ctx.nowMs,
    heldUntilMs: ctx.nowMs + entry.value.spec.ttlMs,
  };
  return spareChange(entry, held, { reason: 'Ready', message }, ctx);
}
