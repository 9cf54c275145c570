// volume-snapshots: makes the snapshots of the schedule of a volume, and deletes the oldest. Each time is decided on once: a snapshot, or an
// event that says why there is none. After a pause of all control planes, the newest time that was missed is made up.

import { ApiError } from '../../api/errors.ts';
import {
  isScheduledSnapshot,
  type SnapshotSchedule,
  type Volume,
  volumeSnapshotsMax,
} from '../../api/resources/volume.ts';
import { changeVolume } from '../operations/volumes/volume.ts';
import { withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { type Change, emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { lastScheduledTime, nextScheduledTimeMs } from '../times/scheduled-times.ts';
import { type Controller, untilNextTimeMs } from './controller.ts';

export const volumeSnapshots: Controller = {
  name: 'volume-snapshots',
  watches: ['volume'],
  *wakes({ key, after }) {
    if (after?.kind === 'volume' && after.spec.snapshotSchedule !== undefined) yield key;
  },
  *keys(snapshot) {
    for (const { key, value } of snapshot.list('volume')) if (value.spec.snapshotSchedule !== undefined) yield key;
  },
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('volume', key);
    const schedule = entry?.value.spec.snapshotSchedule;
    if (!entry || schedule === undefined || entry.value.metadata.deletionRequestedAtMs !== undefined) return emptyPlan;
    return onSchedule(snapshot, { entry, schedule }, ctx);
  },
};

interface Scheduled {
  readonly entry: Entry<Volume>;
  readonly schedule: SnapshotSchedule;
}

function onSchedule(snapshot: Snapshot, { entry, schedule }: Scheduled, ctx: Context): Plan {
  const { key, revision, value } = entry;
  const time = lastScheduledTime(schedule, ctx.nowMs);
  const nextMs = nextScheduledTimeMs(schedule, ctx.nowMs);
  const requeueAfterMs = untilNextTimeMs(nextMs, ctx.nowMs);
  if (time === undefined || time.number <= (value.status.snapshotTimes?.handled ?? 0))
    return { changes: [], requeueAfterMs };
  const name = `auto-${time.stamp}`;
  const { changes, refusal } = snapshotChanges(snapshot, { volume: value, schedule, name }, ctx);
  const changed = changes.find((change) => change.key === key)?.value;
  const now = changed?.kind === 'volume' ? changed : value;
  const condition = {
    type: 'SnapshotSchedule',
    status: refusal === undefined ? 'True' : 'False',
    reason: refusal === undefined ? 'Requested' : 'SnapshotSkipped',
    message: refusal ?? `snapshot ${name} was requested`,
  } as const;
  const next: Volume = {
    ...now,
    status: {
      ...now.status,
      snapshotTimes: { handled: time.number, ...(nextMs === undefined ? {} : { nextMs }) },
      conditions: withConditions(now.status.conditions, [condition], ctx.nowMs),
    },
  };
  const skipped = { type: 'Warning', reason: condition.reason, message: condition.message } as const;
  return {
    changes: [
      { key, ifRevision: revision, value: next },
      ...changes.filter((change) => change.key !== key),
      ...(refusal === undefined ? [] : [eventChange(value, skipped, ctx)]),
    ],
    requeueAfterMs,
  };
}

interface Made {
  readonly changes: readonly Change[];
  /** Why there is none. */
  readonly refusal?: string;
}

function snapshotChanges(
  snapshot: Snapshot,
  { volume, schedule, name }: { readonly volume: Volume; readonly schedule: SnapshotSchedule; readonly name: string },
  ctx: Context,
): Made {
  const { metadata, spec, status } = volume;
  const refused = (refusal: string): Made => ({ changes: [], refusal });
  if (!status.made || status.phase === 'Failed') return refused('the volume is not there');
  const known = spec.snapshots.filter(isScheduledSnapshot).toSorted();
  const waiting = known.find((each) => !status.volume?.snapshots.some((made) => made.name === each));
  if (waiting !== undefined) return refused(`snapshot ${waiting} is not created yet`);
  const old = new Set(known.slice(0, Math.max(0, known.length + 1 - schedule.keep)));
  const snapshots = [...spec.snapshots.filter((each) => !old.has(each)), name];
  if (snapshots.length > volumeSnapshotsMax)
    return refused(`it has ${volumeSnapshotsMax} snapshots already; remove one, or keep fewer of the schedule`);
  const input = { project: metadata.project, name: metadata.name, labels: metadata.labels };
  try {
    return { changes: changeVolume(snapshot, { ...input, spec: { ...spec, snapshots } }, ctx).plan.changes };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return refused(error.message.slice(0, 1_000));
  }
}
