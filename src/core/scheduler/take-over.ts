// Take-over: the placement of an instance created for the room of a task. The task's allocation counts as free for this
// instance only; all rules apply. The Plan that binds the instance must also end the task.

import type { Instance } from '../../api/resources/instance.ts';
import type { Task } from '../../api/resources/task.ts';
import { keys } from '../state/keys.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { fleetOf } from './fleet.ts';
import { verdictsOf } from './engine/full-scan.ts';
import type { Request } from './request.ts';
import { type Placed, placementAt } from './schedule.ts';

export type TakeOver =
  | { readonly placed: true; readonly placement: Placed; readonly task: Entry<Task> }
  | { readonly placed: false; readonly message: string };

/** Only for the first placement: a restarted instance is placed anywhere, because its task has ended. */
export function taskOf({ spec, status }: Pick<Instance, 'spec' | 'status'>): string | undefined {
  return status.incarnation === 0 ? spec.placement.task : undefined;
}

export function takeOver(snapshot: Snapshot, project: string, name: string, request: Request): TakeOver {
  const task = snapshot.get('task', keys.task(project, name));
  if (!task)
    return waits(`its task "${name}" no longer exists: it was removed, or another instance took over its resources`);
  const { phase, host } = task.value.status;
  if (phase === 'Pending') return waits(`its task "${name}" is waiting for a host itself`);
  const fleet = fleetOf(snapshot);
  const slot = fleet.slotOf(host ?? '');
  if (phase !== 'Placed' || slot === undefined)
    return waits(`its task "${name}" has ended and reserves nothing any more`);
  return fleet.tentatively(() => {
    for (const { value } of snapshot.allocationsOfConsumer(task.value.metadata.id))
      fleet.giveBack(slot, value.amounts, value.ports);
    const { refusals, score } = verdictsOf(request, fleet)(slot);
    if (refusals.length === 0)
      return { placed: true, placement: placementAt(fleet, request, { slot, score, fitCount: 1 }), task };
    const reasons = refusals.map(({ reason, message }) => `${reason} (${message()})`);
    return waits(`its task "${name}" holds room on ${host}, which does not take it: ${reasons.join(', ')}`);
  });
}

function waits(message: string): TakeOver {
  return { placed: false, message };
}
