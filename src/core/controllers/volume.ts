// volume: the changes of a volume that no user requests: its record is deleted when its host has deleted the volume, it fails when its
// host is removed, and it is detached from an instance that is gone or no longer names it.
//
//   Pending ──an instance is placed, or host named──▶ Creating ──its host has it──▶ Ready ──deleted──▶ Deleting ──▶ gone
//      ▲                                                 │                            │
//      └───────────────its host is removed───────────────┘                            └──its host is removed──▶ Failed

import type { Volume, VolumeStatus } from '../../api/resources/volume.ts';
import { dischargeQuota } from '../queue/quotas.ts';
import { type NewCondition, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { keys } from '../state/keys.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { volumeStatusChange } from '../state/volume-change.ts';
import { holderOf, volumeAllocationKey } from '../state/volumes.ts';
import { type Controller, keysOfKind } from './controller.ts';

export const volume: Controller = {
  name: 'volume',
  watches: ['volume', 'instance', 'allocation', 'host'],
  wakes({ key, kind, before, after }, snapshot) {
    if (kind === 'volume') return after === null ? [] : [key];
    // An instance that is deleted, or that releases volumes.
    if (before?.kind === 'instance' && before.spec.volumes !== undefined)
      return before.spec.volumes.map(({ name }) => keys.volume(before.metadata.project, name));
    if (before?.kind === 'allocation' && after === null && before.consumer.kind === 'volume')
      return [keys.volume(before.consumer.project, before.consumer.name)];
    return before?.kind === 'host' && after === null ? volumesOn(snapshot, before.metadata.name) : [];
  },
  keys: (snapshot) => keysOfKind(snapshot, 'volume'),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('volume', key);
    if (!entry) return emptyPlan;
    if (entry.value.metadata.deletionRequestedAtMs !== undefined) return finishDeletion(snapshot, entry, ctx);
    return withoutItsHost(snapshot, entry, ctx) ?? withoutItsInstance(snapshot, entry);
  },
};

function volumesOn(snapshot: Snapshot, host: string): string[] {
  return Array.from(snapshot.list('volume')).flatMap(({ key, value }) => (value.status.host === host ? [key] : []));
}

function finishDeletion(snapshot: Snapshot, { key, revision, value }: Entry<Volume>, ctx: Context): Plan {
  const allocation = volumeAllocationKey(value);
  if (snapshot.get('allocation', allocation)) return emptyPlan;
  return {
    conditions: [{ key: allocation, ifRevision: 0 }],
    changes: [
      { key, ifRevision: revision, value: null },
      ...dischargeQuota(snapshot, value),
      eventChange(value, { reason: 'Deleted', message: 'removed completely' }, ctx),
    ],
  };
}

/**
 * A volume that was never created waits for another host, unless its user named this one; controllers/garbage.ts
 * releases its room.
 */
function withoutItsHost(snapshot: Snapshot, entry: Entry<Volume>, ctx: Context): Plan | undefined {
  const { spec, status } = entry.value;
  const { host, ...kept } = status;
  if (host === undefined || status.phase === 'Failed') return undefined;
  const hostKey = keys.host(host);
  if (snapshot.get('host', hostKey)) return undefined;
  const again = !status.made && spec.host === undefined && spec.source === undefined;
  // Its next allocation has the same key.
  if (again && snapshot.get('allocation', volumeAllocationKey(entry.value)))
    return { changes: [], requeueAfterMs: 1000 };
  const why: NewCondition = {
    type: 'Ready',
    status: 'False',
    reason: 'HostRemoved',
    message: again
      ? `host ${host} has been removed before it was made there`
      : `host ${host} has been removed, and the volume with it`,
  };
  const conditions = withConditions(status.conditions, [why], ctx.nowMs);
  const next: VolumeStatus = again
    ? { ...kept, phase: 'Pending', conditions }
    : { ...status, phase: 'Failed', conditions };
  return {
    changes: [
      volumeStatusChange(entry, next),
      eventChange(entry.value, { type: 'Warning', reason: why.reason, message: why.message, host }, ctx),
    ],
    conditions: [{ key: hostKey, ifRevision: 0 }],
  };
}

function withoutItsInstance(snapshot: Snapshot, entry: Entry<Volume>): Plan {
  const { attachedTo, ...status } = entry.value.status;
  if (attachedTo === undefined) return emptyPlan;
  const holder = holderOf(snapshot, entry.value);
  if (holder) return emptyPlan;
  const instance = snapshot.instanceById(attachedTo.id);
  return {
    changes: [volumeStatusChange(entry, status)],
    // The instance may request it again at this moment.
    ...(instance ? { conditions: [{ key: instance.key, ifRevision: instance.revision }] } : {}),
  };
}
