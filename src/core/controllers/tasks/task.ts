// task: places pending tasks, claiming their room in the same Plan, and releases it when their time is over.
//
//   Pending ──room found──▶ Placed ──time is over──▶ Expired ──┐ tasksKeptMs later
//      └──no room, and it may not wait──▶ Failed ◀──┘ its host is removed ────────┴──▶ gone

import type { Task } from '../../../api/resources/task.ts';
import { claim } from '../../ledger/ledger.ts';
import { endTask, taskChange } from '../../operations/tasks/end-task.ts';
import { requestOf } from '../../scheduler/request.ts';
import { whyItWaits } from '../../explain/cpu-advice.ts';
import { placedMessage, schedule } from '../../scheduler/schedule.ts';
import { conditionOf } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, RecordChange, Snapshot } from '../../state/snapshot.ts';
import { sparesOf } from '../../state/views/spares.ts';
import { tasksOf } from '../../state/views/tasks.ts';
import { type Controller, keysOfKind, sleepMsMax } from '../controller.ts';
import { mayMakeRoom } from '../placement.ts';

export const task: Controller = {
  name: 'task',
  watches: ['task', 'host', 'image', 'size', 'pool', 'allocation', 'provider', 'instance'],
  wakes(change, snapshot) {
    if (change.kind === 'task') return change.after ? [change.key] : [];
    const tasks = tasksOf(snapshot);
    const helped = tasks.pending.size > 0 && (mayMakeRoom(change) || givesUpRoom(change)) ? [...tasks.pending] : [];
    const removed = change.kind === 'host' && change.after === null && change.before?.kind === 'host';
    return removed ? [...helped, ...tasks.placedOn(change.before.metadata.name)] : helped;
  },
  keys: (snapshot) => keysOfKind(snapshot, 'task'),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('task', key);
    if (!entry) return emptyPlan;
    const { phase, heldUntilMs = 0, endedAtMs = 0 } = entry.value.status;
    switch (phase) {
      case 'Pending':
        return placeTask(snapshot, entry, ctx);
      case 'Placed': {
        const leftMs = isOfSpare(snapshot, entry.value) ? sleepMsMax : heldUntilMs - ctx.nowMs;
        if (leftMs <= 0) return expire(snapshot, entry, ctx);
        return failWithItsHost(snapshot, entry, ctx) ?? again(leftMs);
      }
      case 'Expired':
      case 'Failed': {
        const leftMs = endedAtMs + ctx.policy.tasksKeptMs - ctx.nowMs;
        return leftMs > 0 ? again(leftMs) : { changes: [{ key, ifRevision: entry.revision, value: null }] };
      }
    }
  },
};

/** A reservation for an instance ended. */
function givesUpRoom({ before, after }: RecordChange): boolean {
  const kept = before?.kind === 'instance' ? before.status.nomination?.host : undefined;
  return kept !== undefined && !(after?.kind === 'instance' && after.status.nomination?.host === kept);
}

/** A spare says itself when its room is released. */
function isOfSpare(snapshot: Snapshot, { metadata }: Task): boolean {
  return sparesOf(snapshot).heldBy(metadata.id) !== undefined;
}

function again(afterMs: number): Plan {
  return { changes: [], requeueAfterMs: Math.min(afterMs, sleepMsMax) };
}

/** Finds room for a pending task, or says why there is none. */
export function placeTask(snapshot: Snapshot, entry: Entry<Task>, ctx: Context): Plan {
  const { metadata, spec, status } = entry.value;
  const request = requestOf(snapshot, entry.value);
  const answer = schedule(snapshot, request);
  if (!answer.placed) {
    const message = whyItWaits(snapshot, request, answer);
    if (spec.whenFull === 'fail')
      return { changes: endTask(snapshot, entry, { phase: 'Failed', reason: 'NoRoom', message }, ctx) };
    const known = conditionOf(status.conditions, 'Scheduled');
    if (known?.status === 'False' && known.message === message) return emptyPlan;
    const told = { status: 'False', reason: 'Unschedulable', message } as const;
    return { changes: taskChange(entry, status, { ...told, type: 'Scheduled' }, ctx) };
  }
  const { host, driver, held } = answer;
  const { key, revision } = snapshot.get('host', keys.host(host)) ?? { key: keys.host(host), revision: 0 };
  return {
    changes: [
      ...taskChange(
        entry,
        {
          ...status,
          phase: 'Placed',
          host,
          assigned: request.assigned,
          placedAtMs: ctx.nowMs,
          heldUntilMs: ctx.nowMs + spec.ttlMs,
        },
        { type: 'Scheduled', status: 'True', reason: 'Placed', message: placedMessage(answer) },
        ctx,
      ),
      ...claim(snapshot, {
        consumer: { kind: 'task', id: metadata.id, incarnation: 1, project: metadata.project, name: metadata.name },
        host,
        held,
        driver,
        ports: request.ports,
      }),
    ],
    // Still existing, online and not paused, as for instances (S4.3).
    conditions: [{ key, ifRevision: revision }],
  };
}

function expire(snapshot: Snapshot, entry: Entry<Task>, ctx: Context): Plan {
  const message = `its time has expired; it held resources on ${entry.value.status.host ?? 'no host'}`;
  return { changes: endTask(snapshot, entry, { phase: 'Expired', reason: 'Expired', message }, ctx) };
}

function failWithItsHost(snapshot: Snapshot, entry: Entry<Task>, ctx: Context): Plan | undefined {
  const { status } = entry.value;
  const hostKey = keys.host(status.host ?? '');
  if (snapshot.get('host', hostKey)) return undefined;
  const message = `host ${status.host} has been removed, and the reservation with it`;
  return {
    changes: endTask(snapshot, entry, { phase: 'Failed', reason: 'HostRemoved', message }, ctx),
    conditions: [{ key: hostKey, ifRevision: 0 }],
  };
}
