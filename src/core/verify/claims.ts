// An instance that is bound to a host has an allocation there.

import type { Instance } from '../../api/resources/instance.ts';
import { withConditions } from '../state/conditions.ts';
import { eventChange } from '../state/events.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Rule } from './fault.ts';

export const claimsOfInstances: Rule = function* (snapshot) {
  for (const { key, value } of snapshot.list('instance')) {
    const { metadata, status } = value;
    if (holdsRoom(snapshot, value)) {
      yield undefined;
      continue;
    }
    const subject = `instance ${metadata.project}/${metadata.name}`;
    yield {
      key: `no room ${metadata.id}.${status.incarnation}`,
      code: 'RoomMissing',
      subject,
      host: status.host ?? '',
      message: `it is bound to host ${status.host} and holds no room there`,
      cause: 'its allocation was deleted without it: through the Placement API, or by hand',
      repair: {
        what: `fails ${subject}, so that its restart policy decides`,
        plan(now, ctx) {
          const entry = now.get('instance', key);
          if (!entry || entry.value.metadata.id !== metadata.id || holdsRoom(now, entry.value)) return null;
          const { host = '', ...kept } = entry.value.status;
          const why = { reason: 'RoomLost', message: `the room that it held on host ${host} was taken from it` };
          const conditions = withConditions(kept.conditions, [{ type: 'Running', status: 'False', ...why }], ctx.nowMs);
          return {
            changes: [
              instanceStatusChange(entry, { ...kept, phase: 'Failed', failedAtMs: ctx.nowMs, conditions }),
              eventChange(entry.value, { type: 'Warning', ...why, host }, ctx),
            ],
          };
        },
      },
    };
  }
};

/** An ended instance needs none: its disk may be gone with its host. */
const needsRoom: ReadonlySet<string> = new Set([
  'Scheduled',
  'Starting',
  'Running',
  'Suspended',
  'Stopping',
  'Stopped',
]);

function holdsRoom(snapshot: Snapshot, { metadata, status }: Instance): boolean {
  if (status.host === undefined || metadata.deletionRequestedAtMs !== undefined) return true;
  if (!needsRoom.has(status.phase)) return true;
  return snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation))?.value.host === status.host;
}
