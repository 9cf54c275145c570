// Starts an ended instance again: on its own disk when its guest ever ran, else as a new one. Its room is claimed by
// controllers/power-on.ts or by placement, as for any other. It never starts an instance that may still run somewhere.

import { ApiError } from '../../api/errors.ts';
import { type Instance, type InstanceSpec, type InstanceStatus, isToBeOn } from '../../api/resources/instance.ts';
import { conditionOf, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import type { NewEvent } from '../state/events.ts';
import { mayRunUnseen, putBehind } from '../state/guest-phase.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { unplacedStatus } from '../state/unplaced-status.ts';

interface StartAgain {
  readonly status: InstanceStatus;
  readonly event: NewEvent;
}

/** On order of its owner, which ends a row of restarts. Undefined: it has not ended. Throws `Conflict` when it cannot start again. */
export function startAgain(
  snapshot: Snapshot,
  instance: Instance,
  wanted: InstanceSpec,
  ctx: Context,
): StartAgain | undefined {
  const { restarts: _restarts, ...status } = instance.status;
  if (status.phase !== 'Exited' && status.phase !== 'Failed') return undefined;
  const again = againOf(snapshot, { ...instance, status }, wanted, ctx);
  if (!('refused' in again)) return again;
  throw new ApiError('Conflict', `instance "${instance.metadata.name}" cannot start again: ${again.refused}`);
}

/** For an instance that has ended. */
export function againOf(
  snapshot: Snapshot,
  instance: Instance,
  wanted: InstanceSpec,
  ctx: Context,
): StartAgain | { readonly refused: string } {
  const { metadata, status } = instance;
  const ended = conditionOf(status.conditions, 'Running')?.message ?? 'it ended';
  if (mayRunUnseen(instance)) return { refused: `${ended}; its guest may still run` };
  const { guest } = status;
  if (guest?.reason === recordDamaged) return { refused: ended };
  const ran = status.runningAtMs !== undefined || guest?.phases.some(({ name }) => name === 'start') === true;
  if (!ran) return { status: placedAgain(status, wanted, ended, ctx), event: news(ended) };
  const endedRunAtMs = guest?.startedAtMs ?? status.startAgain?.endedRunAtMs;
  const here = snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation))?.value.host === status.host;
  if (!guest || !here || endedRunAtMs === undefined)
    return { refused: `${ended}; its disk no longer exists, so remove it and run a new one` };
  return {
    status: {
      ...status,
      phase: 'Stopped',
      guest: putBehind(guest),
      startAgain: { order: (wanted.starts ?? 0) + status.restartCount, endedRunAtMs },
      conditions: conditionsAfter(status, { scheduled: false, ended }, ctx),
    },
    event: { ...news(ended), ...(status.host === undefined ? {} : { host: status.host }) },
  };
}

/** Reported by a driver for a guest whose record is unreadable: it may or may not run. */
const recordDamaged = 'RecordDamaged';

/** The guest never ran, so no disk ties it to a host. */
function placedAgain(status: InstanceStatus, wanted: InstanceSpec, ended: string, ctx: Context): InstanceStatus {
  return {
    ...unplacedStatus(status),
    phase: isToBeOn(wanted) ? 'Pending' : 'Stopped',
    conditions: conditionsAfter(status, { scheduled: true, ended }, ctx),
  };
}

function conditionsAfter(
  { conditions }: InstanceStatus,
  { scheduled, ended }: { readonly scheduled: boolean; readonly ended: string },
  ctx: Context,
): InstanceStatus['conditions'] {
  const why = { status: 'False', reason: 'StartingAgain', message: `to start again after: ${ended}` } as const;
  return withConditions(
    conditions,
    [
      ...(scheduled ? [{ type: 'Scheduled', ...why } as const] : []),
      { type: 'Running', ...why },
      { type: 'Ready', ...why },
    ],
    ctx.nowMs,
  );
}

const news = (ended: string): NewEvent => ({
  reason: 'StartingAgain',
  message: `asked to start again after: ${ended}`,
});
