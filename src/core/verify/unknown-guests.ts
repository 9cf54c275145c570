// Unknown guests: guests on hosts without an instance there. They are never deleted automatically, only when an
// operator requests it, through an allocation that nothing wants, which is the order to delete the guest.

import type { UnknownGuest } from '../../api/resources/host.ts';
import { mayRunUnseen } from '../state/guest-phase.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Fault, Rule } from './fault.ts';

export const unknownGuests: Rule = function* (snapshot) {
  for (const { value } of snapshot.list('host')) {
    for (const guest of value.status.unknownGuests) yield faultOf(snapshot, value.metadata.name, guest);
    yield undefined;
  }
};

function faultOf(snapshot: Snapshot, host: string, guest: UnknownGuest): Fault | undefined {
  const { instanceId, incarnation, driver, state } = guest;
  const allocationKey = keys.allocation(instanceId, incarnation);
  const held = snapshot.get('allocation', allocationKey)?.value.host;
  if (held === host) return undefined; // already ordered to be deleted, or just adopted
  const instance = snapshot.instanceById(instanceId)?.value;
  const elsewhere = instance?.status.host;
  const known = instance && elsewhere !== undefined;
  // Of an instance without a record only the id is known.
  const whose = instance ? `instance ${instance.metadata.project}/${instance.metadata.name}` : instanceId;
  // After a restore the newer incarnation may be the only copy: no order may delete it.
  const mayBeTheLast = instance !== undefined && mayRunUnseen(instance) && incarnation > instance.status.incarnation;
  return {
    key: `guest ${host} ${instanceId}.${incarnation}`,
    code: known ? 'SecondGuest' : 'UnknownGuest',
    subject: instance ? whose : `guest ${instanceId}`,
    host,
    message: `host ${host} has a ${state} guest of ${whose}, incarnation ${incarnation} (${driver})${known ? `, which is incarnation ${instance.status.incarnation} on host ${elsewhere}` : ''}`,
    cause: instance
      ? 'the instance was placed elsewhere since, or the store was restored from a backup'
      : 'its instance was removed while the host was away, or the store was restored from an older backup, or the disk comes from another fleet',
    ...(mayBeTheLast || held !== undefined
      ? {}
      : {
          repair: {
            what: `orders host ${host} to remove the guest of ${whose}, incarnation ${incarnation}, with its disk`,
            destroys: true,
            plan(now) {
              const entry = now.get('host', keys.host(host));
              const still = entry?.value.status.unknownGuests.some(
                (each) => each.instanceId === instanceId && each.incarnation === incarnation,
              );
              if (!entry || !still || now.get('allocation', allocationKey)) return null;
              const consumer = { id: instanceId, incarnation, project: 'unknown', name: instanceId };
              return {
                changes: [
                  {
                    key: allocationKey,
                    ifRevision: 0,
                    value: { kind: 'allocation', consumer, host, amounts: {}, driver },
                  },
                ],
                conditions: [{ key: entry.key, ifRevision: entry.revision }],
              };
            },
          },
        }),
  };
}
