// What users do with tasks: request room, and release it early. controllers/tasks/task.ts finds the room.

import { ApiError } from '../../api/errors.ts';
import type { Task, TaskSpec } from '../../api/resources/task.ts';
import { releaseAllOf } from '../ledger/ledger.ts';
import { chargeTask, dischargeQuota } from '../queue/quotas.ts';
import { schemaVersion } from '../state/upgrade.ts';
import { withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { assertAskable } from './askable.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from './create.ts';
import { alreadyDone, type Decision } from './decision.ts';
import { type DeleteInput, existing } from './replace.ts';
import { endTask } from './tasks/end-task.ts';

export function createTask(snapshot: Snapshot, input: CreateInput<TaskSpec>, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'task');
  if (earlier) return earlier;
  assertAskable(snapshot, input);
  if (input.spec.placement.task !== undefined) {
    throw new ApiError('InvalidRequest', 'a task cannot take over the room of another task; only instances can', {
      field: 'spec.placement.task',
    });
  }
  const key = keys.task(input.project, input.name);
  assertFree(snapshot, 'task', key, input.name);
  const waiting = { reason: 'Accepted', message: 'waiting in the queue' };
  const task = newTask(input, { phase: 'Pending', ...waiting }, ctx);
  const { id } = task.metadata;
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: task },
        ...chargeTask(snapshot, task),
        ...rememberCreate(input, 'task', { key, id }, ctx),
        eventChange(task, { reason: 'Accepted', message: 'accepted' }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

/** A task that gets no room, and counts for no quota: it keeps what became of its request. */
export function createRefusedTask(
  snapshot: Snapshot,
  input: CreateInput<TaskSpec>,
  why: { readonly reason: string; readonly message: string },
  ctx: Context,
): Decision {
  const key = keys.task(input.project, input.name);
  assertFree(snapshot, 'task', key, input.name);
  const task = newTask(input, { phase: 'Failed', endedAtMs: ctx.nowMs, ...why }, ctx);
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: task },
        ...rememberCreate(input, 'task', { key, id: task.metadata.id }, ctx),
        eventChange(task, { type: 'Warning', ...why }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

function newTask(
  input: CreateInput<TaskSpec>,
  { reason, message, ...status }: Pick<Task['status'], 'phase' | 'endedAtMs'> & Record<'reason' | 'message', string>,
  ctx: Context,
): Task {
  return {
    kind: 'task',
    schemaVersion,
    metadata: newMetadata(ctx.newId('task'), input, ctx),
    spec: input.spec,
    status: {
      ...status,
      conditions: withConditions([], [{ type: 'Scheduled', status: 'False', reason, message }], ctx.nowMs),
    },
  };
}

/** A task has nothing on its host: one Plan releases its room and deletes the record. */
export function deleteTask(snapshot: Snapshot, input: DeleteInput, ctx: Context): Decision {
  const key = keys.task(input.project, input.name);
  const entry = existing(snapshot, 'task', key, input.ifRevision);
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: null },
        ...releaseAllOf(snapshot, entry.value.metadata.id),
        ...dischargeQuota(snapshot, entry.value),
        eventChange(entry.value, { reason: 'Deleted', message: 'ended early' }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

/** Releases the room of a task and keeps its record, so that its result can still be asked for. Repeating it changes nothing. */
export function releaseTask(
  snapshot: Snapshot,
  { key, id }: { readonly key: string; readonly id: string },
  ctx: Context,
): Decision {
  const entry = snapshot.get('task', key);
  if (entry?.value.metadata.id !== id) throw new ApiError('NotFound', `there is no task "${id}"`);
  const { status } = entry.value;
  if (status.phase !== 'Pending' && status.phase !== 'Placed') return alreadyDone(entry);
  const ending = { phase: 'Expired', reason: 'Released', message: 'it was released' } as const;
  return { plan: { changes: endTask(snapshot, entry, ending, ctx) }, key, changed: true };
}
