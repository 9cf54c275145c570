// overdue: says who has to act on an instance that stays in a state on the way to another for longer than that should take. It ends
// nothing: a slow host may still do it, and what may be running unseen must not be assumed to have ended.
//
//   state      owner                     time                             ended by
//   Pending    the scheduler             – (it says at once why it waits)  room, a change of the request, its deletion
//   Scheduled  the agent of its host     2 min after its placement         the host, or controllers/hosts/lost-host.ts when that is silent
//   Starting   the agent of its host     30 min after its placement        the same; a download may take long
//   Stopping   the agent of its host     its grace; then it is forced      the host
//   Deleting   the agents of its hosts   its grace and 5 min               the hosts, or "berth host rm --force"

import type { Instance } from '../../api/resources/instance.ts';
import { conditionOf, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { type Controller, keysOfKind } from './controller.ts';

const limitsMs = { Scheduled: 120_000, Starting: 1_800_000, Deleting: 300_000 } as const;

interface Transition {
  readonly sinceMs: number;
  readonly limitMs: number;
  readonly message: string;
}

export const overdue: Controller = {
  name: 'overdue',
  watches: ['instance'],
  wakes({ key, before, after }) {
    if (after?.kind !== 'instance') return [];
    const moved = before?.kind !== 'instance' || before.status.phase !== after.status.phase;
    return moved && (isOnItsWay(after) || isTold(after)) ? [key] : [];
  },
  keys: (snapshot) => keysOfKind(snapshot, 'instance'),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    if (!instance) return emptyPlan;
    const transition = transitionOf(snapshot, instance.value);
    if (!transition) return isTold(instance.value) ? tell(instance, undefined, ctx) : emptyPlan;
    const leftMs = transition.sinceMs + transition.limitMs - ctx.nowMs;
    if (leftMs > 0) return { changes: [], requeueAfterMs: Math.min(leftMs, transition.limitMs) };
    const known = conditionOf(instance.value.status.conditions, 'Progressing');
    return known?.status === 'False' && known.message === transition.message
      ? emptyPlan
      : tell(instance, transition.message, ctx);
  },
};

function isOnItsWay({ status }: Instance): boolean {
  if (status.phase === 'Deleting') return true;
  return (status.phase === 'Scheduled' || status.phase === 'Starting') && status.runningAtMs === undefined;
}

const isTold = ({ status }: Instance): boolean => conditionOf(status.conditions, 'Progressing')?.status === 'False';

function transitionOf(snapshot: Snapshot, instance: Instance): Transition | undefined {
  if (!isOnItsWay(instance)) return undefined;
  const { metadata, spec, status } = instance;
  const { phase, host = '?', scheduledAtMs } = status;
  if (phase === 'Deleting') {
    const holders = [...new Set(snapshot.allocationsOfConsumer(metadata.id).map(({ value }) => value.host))].sort();
    if (holders.length === 0) return undefined; // controllers/garbage.ts deletes it now
    const limitMs = spec.stopGraceMs + limitsMs.Deleting;
    return {
      ...{ sinceMs: metadata.deletionRequestedAtMs ?? 0, limitMs },
      message: `${holders.join(', ')} has not removed it for ${minutes(limitMs)}; see "berth host show ${holders[0]}". If that host never returns: "berth host rm --force ${holders[0]}"`,
    };
  }
  if ((phase !== 'Scheduled' && phase !== 'Starting') || scheduledAtMs === undefined) return undefined;
  const limitMs = limitsMs[phase];
  const what = phase === 'Scheduled' ? 'has not begun with it' : 'has not started its guest';
  return {
    ...{ sinceMs: scheduledAtMs, limitMs },
    message: `${host} ${what} for ${minutes(limitMs)}; see "berth host show ${host}", "berth events ${metadata.name}"`,
  };
}

const minutes = (ms: number): string => `${Math.round(ms / 60_000)} min`;

/** `message` undefined: it has moved on. */
function tell(instance: Entry<Instance>, message: string | undefined, ctx: Context): Plan {
  const { status } = instance.value;
  const condition =
    message === undefined
      ? ({ type: 'Progressing', status: 'True', reason: 'MovedOn', message: `it is ${status.phase}` } as const)
      : ({ type: 'Progressing', status: 'False', reason: 'Overdue', message } as const);
  const { host } = status;
  return {
    changes: [
      instanceStatusChange(instance, {
        ...status,
        conditions: withConditions(status.conditions, [condition], ctx.nowMs),
      }),
      ...(message === undefined
        ? []
        : [
            eventChange(
              instance.value,
              { type: 'Warning', reason: 'Overdue', message, ...(host === undefined ? {} : { host }) },
              ctx,
            ),
          ]),
    ],
  };
}
