// placement: binds a waiting instance to the host that the scheduler chose, and holds its room there, in one Plan.

import type { Instance } from '../../api/resources/instance.ts';
import type { Task } from '../../api/resources/task.ts';
import { claim, releaseAllOf } from '../ledger/ledger.ts';
import { isWaiting, queueOf } from '../queue/queue.ts';
import { type Request, requestOf } from '../scheduler/request.ts';
import { type Placed, placedMessage, schedule, summarize } from '../scheduler/schedule.ts';
import { takeOver, taskOf } from '../scheduler/take-over.ts';
import { conditionOf, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry, RecordChange, Snapshot } from '../state/snapshot.ts';
import type { Controller } from './controller.ts';

export const placement: Controller = {
  name: 'placement',
  dueLine: (snapshot, policy) => queueOf(snapshot).dueLine(policy),
  wakes: (change, snapshot) =>
    change.kind === 'task' ? waitForTask(change, snapshot) : queueOf(snapshot).wokenBy(change),
  keys: (snapshot) => queueOf(snapshot).keys(),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    if (!instance || !isWaiting(instance.value)) return emptyPlan;
    const request = requestOf(snapshot, instance.value);
    const task = taskOf(instance.value);
    if (task !== undefined) {
      const taken = takeOver(snapshot, instance.value.metadata.project, task, request);
      return taken.placed
        ? bind(snapshot, instance, taken.placement, request, ctx, endOfTask(snapshot, taken.task, instance.value, ctx))
        : wait(instance, taken.message, ctx);
    }
    const answer = schedule(snapshot, request);
    return answer.placed ? bind(snapshot, instance, answer, request, ctx) : wait(instance, summarize(answer), ctx);
  },
};

/** Whether an instance that fitted nowhere may fit after this. Claims and leases only take room or take none. */
export function mayMakeRoom({ kind, before, after }: RecordChange): boolean {
  switch (kind) {
    case 'host':
    case 'image':
    case 'size':
    case 'pool':
      return after !== null;
    case 'allocation':
      return before !== null; // released, or made smaller
    case 'provider':
      return before?.kind !== 'provider' || after?.kind !== 'provider' || before.inventories !== after.inventories;
    default:
      return false;
  }
}

function bind(
  snapshot: Snapshot,
  instance: Entry<Instance>,
  placed: Placed,
  { assigned, ports }: Request,
  ctx: Context,
  endOfTask: readonly Change[] = [],
): Plan {
  const { host, driver, held } = placed;
  const { metadata, status } = instance.value;
  const { key, revision } = snapshot.get('host', keys.host(host)) ?? { key: keys.host(host), revision: 0 };
  const incarnation = status.incarnation + 1;
  const message = endOfTask.length > 0 ? `placed on ${host} in the room its task held there` : placedMessage(placed);
  const {
    guest: _guest,
    report: _report,
    readyAtMs: _ready,
    runningAtMs: _running,
    failedAtMs: _failed,
    ...kept
  } = status;
  return {
    changes: [
      instanceStatusChange(instance, {
        ...kept,
        phase: 'Scheduled',
        host,
        incarnation,
        assigned,
        scheduledAtMs: ctx.nowMs,
        conditions: withConditions(
          status.conditions,
          [
            { type: 'Scheduled', status: 'True', reason: 'Placed', message },
            { type: 'Running', status: 'False', reason: 'NotStarted', message: `${host} has not begun yet` },
            { type: 'Ready', status: 'False', reason: 'NotStarted', message: `${host} has not begun yet` },
          ],
          ctx.nowMs,
        ),
      }),
      ...claim(snapshot, {
        consumer: { id: metadata.id, incarnation, project: metadata.project, name: metadata.name },
        host,
        held,
        driver,
        ports,
      }),
      ...endOfTask,
      eventChange(instance.value, { reason: 'Scheduled', message, host }, ctx),
    ],
    // S4.3: the host is still there, online, on the same machine and not paused.
    conditions: [{ key, ifRevision: revision }],
  };
}

/** Those that were made for its room. */
function* waitForTask({ before, after }: RecordChange, snapshot: Snapshot): Iterable<string> {
  const task = after?.kind === 'task' ? after : before?.kind === 'task' ? before : undefined;
  for (const key of snapshot.pendingInstanceKeys()) {
    const instance = snapshot.get('instance', key)?.value;
    const same = instance && instance.metadata.project === task?.metadata.project;
    if (same && taskOf(instance) === task?.metadata.name) yield key;
  }
}

function endOfTask(snapshot: Snapshot, task: Entry<Task>, { metadata }: Instance, ctx: Context): Change[] {
  return [
    { key: task.key, ifRevision: task.revision, value: null },
    ...releaseAllOf(snapshot, task.value.metadata.id),
    eventChange(task.value, { reason: 'TakenOver', message: `instance ${metadata.name} has taken over its room` }, ctx),
  ];
}

/** Says why it waits. Written only when there is another reason, not when hosts are counted otherwise, so that waiting costs nothing. */
function wait(instance: Entry<Instance>, message: string, ctx: Context): Plan {
  const { status } = instance.value;
  const known = conditionOf(status.conditions, 'Scheduled');
  if (known?.status === 'False' && sameReasons(known.message, message)) return emptyPlan;
  const conditions = withConditions(
    status.conditions,
    [{ type: 'Scheduled', status: 'False', reason: 'Unschedulable', message }],
    ctx.nowMs,
  );
  return {
    changes: [
      instanceStatusChange(instance, { ...status, conditions }),
      eventChange(instance.value, { type: 'Warning', reason: 'Unschedulable', message }, ctx),
    ],
  };
}

/** `0 of 12 hosts: 7 InsufficientMemory, 5 DriverMissing` says the same as with other numbers. */
function sameReasons(a: string, b: string): boolean {
  return a === b || reasonsIn(a) === reasonsIn(b);
}

function reasonsIn(message: string): string {
  const reasons = [...message.matchAll(/\b\d+ ([A-Z]\w+)/g)].map(([, reason]) => reason);
  return reasons.length === 0 ? message : reasons.sort().join();
}
