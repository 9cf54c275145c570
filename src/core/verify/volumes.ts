// Volumes: a volume on a host has an allocation there, and hosts have no volume without a record. An unknown volume may
// be the only copy of its data: it is deleted only when an operator requests it.

import { keys } from '../state/keys.ts';
import { volumeAllocationKey } from '../state/volumes.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Fault, Rule } from './fault.ts';

export const volumes: Rule = function* (snapshot) {
  for (const { value } of snapshot.list('volume')) {
    const { metadata, status } = value;
    const held = snapshot.get('allocation', volumeAllocationKey(value))?.value.host;
    const over = status.phase === 'Failed' || metadata.deletionRequestedAtMs !== undefined;
    yield status.host === undefined || over || held === status.host
      ? undefined
      : {
          key: `no room ${metadata.id}`,
          code: 'RoomMissing',
          subject: `volume ${metadata.project}/${metadata.name}`,
          host: status.host,
          message: `it is on host ${status.host} and holds no room there`,
          cause: 'its allocation was deleted without it: through the Placement API, or by hand',
        };
  }
  for (const { value } of snapshot.list('host'))
    for (const id of value.status.unknownVolumes ?? []) yield unknown(snapshot, value.metadata.name, id);
};

function unknown(snapshot: Snapshot, host: string, id: string): Fault | undefined {
  const allocationKey = keys.allocation(id, 1);
  const hosts = snapshot.allocationsOfConsumer(id).map(({ value }) => value.host);
  const held = hosts[0];
  if (hosts.includes(host)) return undefined; // already ordered to be deleted, or just adopted
  return {
    key: `volume ${host} ${id}`,
    code: 'UnknownVolume',
    subject: `volume ${id}`,
    host,
    message: `host ${host} has volume ${id}, and there is no record of it`,
    cause:
      'its record was removed while the host was away, or the store was restored from an older backup, or the disk comes from another fleet',
    ...(held === undefined
      ? {
          repair: {
            what: `orders host ${host} to remove volume ${id} with its data`,
            destroys: true,
            plan(now) {
              const entry = now.get('host', keys.host(host));
              if (!entry?.value.status.unknownVolumes?.includes(id) || now.get('allocation', allocationKey))
                return null;
              const consumer = { kind: 'volume', id, incarnation: 1, project: 'unknown', name: id } as const;
              return {
                changes: [
                  {
                    key: allocationKey,
                    ifRevision: 0,
                    value: { kind: 'allocation', consumer, host, amounts: {}, driver: '' },
                  },
                ],
                conditions: [{ key: entry.key, ifRevision: entry.revision }],
              };
            },
          },
        }
      : {}),
  };
}
