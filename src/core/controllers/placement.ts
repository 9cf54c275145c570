// placement: binds a waiting instance to the host that the scheduler chose, and holds its room there, in one Plan.

import { equalJson } from '../../base/equal-json.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Task } from '../../api/resources/task.ts';
import { releaseAllOf } from '../ledger/ledger.ts';
import { gangKeyOf, gangMissing, gangsOf, placeGang } from '../queue/gangs.ts';
import { countAsked, gateOf, limitsOn } from '../queue/limits.ts';
import { limitReached, queueOf } from '../queue/queue.ts';
import { isWaiting } from '../queue/waiting.ts';
import { type Request, requestOf } from '../scheduler/request.ts';
import { whyItWaits } from '../explain/cpu-advice.ts';
import { schedule } from '../scheduler/schedule.ts';
import { takeOver, taskOf } from '../scheduler/take-over.ts';
import { conditionOf } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { type Change, emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry, RecordChange, Snapshot } from '../state/snapshot.ts';
import { bind } from './bind.ts';
import type { Controller } from './controller.ts';
import { waitForRoom } from './make-room.ts';
import { wait, type WaitReason } from './wait.ts';

export const placement: Controller = {
  name: 'placement',
  watches: ['instance', 'allocation', 'provider', 'host', 'image', 'size', 'pool', 'group', 'task'],
  dueLine: (snapshot, policy) => queueOf(snapshot).dueLine(policy),
  wakes: (change, snapshot) =>
    change.kind === 'task' ? waitForTask(change, snapshot) : queueOf(snapshot).wokenBy(change),
  keys: (snapshot) => queueOf(snapshot).keys(),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    if (!instance || !isWaiting(instance.value)) return emptyPlan;
    if (instance.value.spec.gang !== undefined) return placeTogether(snapshot, instance, instance.value.spec.gang, ctx);
    const limits = limitsOn(snapshot, ctx.policy, instance.value);
    const reached = limitReached(snapshot, limits);
    if (reached) return wait(instance, reached, ctx);
    const gates = limits.map(gateOf);
    const request = requestOf(snapshot, instance.value);
    const task = taskOf(instance.value);
    if (task !== undefined) return placeInRoomOf(snapshot, instance, { task, request, gates }, ctx);
    const queue = queueOf(snapshot);
    const told = conditionOf(instance.value.status.conditions, 'Scheduled');
    const known = told?.reason === 'Unschedulable' && queue.cannotFit(key, request) ? told.message : undefined;
    const unfit = known ?? queue.whyUnfit(key);
    if (unfit !== undefined) return waitForRoom(snapshot, instance, { request, message: unfit }, ctx);
    const answer = schedule(snapshot, request);
    if (answer.placed) return bind(snapshot, [{ instance, request, placed: answer }], { gates }, ctx);
    const message = whyItWaits(snapshot, request, answer);
    queue.noteUnfit(key, request, message);
    return waitForRoom(snapshot, instance, { request, message }, ctx);
  },
};

/** The oldest waiting member of a gang places all of them. */
function placeTogether(
  snapshot: Snapshot,
  instance: Entry<Instance>,
  gang: NonNullable<Instance['spec']['gang']>,
  ctx: Context,
): Plan {
  const living = gangsOf(snapshot).living(gangKeyOf(instance.value) ?? '');
  if (living.length < gang.size)
    return wait(instance, { reason: 'GangIncomplete', message: gangMissing(gang, living.length) }, ctx);
  const waiting = living.filter(({ value }) => isWaiting(value));
  if (waiting[0]?.key !== instance.key) return emptyPlan;
  const all = (why: WaitReason): Plan => ({ changes: waiting.flatMap((each) => wait(each, why, ctx).changes) });
  const asked = countAsked(waiting.map(({ value }) => limitsOn(snapshot, ctx.policy, value)));
  for (const { limit, count } of asked.values()) {
    const reached = limitReached(snapshot, [limit], count);
    if (reached) return all(reached);
  }
  const members = waiting.map((each) => ({ instance: each, request: requestOf(snapshot, each.value) }));
  const answer = placeGang(snapshot, gang.name, members);
  return answer.placed
    ? bind(snapshot, answer.members, { gates: asked.keys() }, ctx)
    : all({ reason: 'Unschedulable', message: answer.message });
}

function placeInRoomOf(
  snapshot: Snapshot,
  instance: Entry<Instance>,
  { task, request, gates }: { readonly task: string; readonly request: Request; readonly gates: readonly string[] },
  ctx: Context,
): Plan {
  const taken = takeOver(snapshot, instance.value.metadata.project, task, request);
  if (!taken.placed) return wait(instance, { reason: 'Unschedulable', message: taken.message }, ctx);
  const message = `placed on ${taken.placement.host} in the room its task held there`;
  const more = endOfTask(snapshot, taken.task, instance.value, ctx);
  return bind(snapshot, [{ instance, request, placed: taken.placement, message }], { gates, more }, ctx);
}

/** Whether a waiting instance may fit after this change. Claims only take room, and leases do not change it. */
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
      return (
        before?.kind !== 'provider' || after?.kind !== 'provider' || !equalJson(before.inventories, after.inventories)
      );
    default:
      return false;
  }
}

/** Instances created for the room of this task. */
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
