// Allocations that are not needed: the instance is gone or elsewhere, or the task has ended. An instance's allocation
// is released only when its host has reported that nothing is left; this rule releases allocations on removed hosts and
// of ended tasks.

import { release } from '../ledger/ledger.ts';
import { isOutsideGroup } from '../ledger/outside-group.ts';
import type { Allocation } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { keys } from '../state/keys.ts';
import type { Fault, Rule } from './fault.ts';

export const leakedRoom: Rule = function* (snapshot) {
  for (const allocation of snapshot.list('allocation')) yield faultOf(snapshot, allocation);
};

function faultOf(snapshot: Snapshot, { key, value }: Entry<Allocation>): Fault | undefined {
  const why = whyNobody(snapshot, value);
  if (why === undefined) return undefined;
  const { consumer, host } = value;
  const there = snapshot.get('host', keys.host(host)) !== undefined;
  const mayGo = consumer.kind === 'task' || consumer.kind === 'outside' || !there;
  const subject = `${consumer.kind ?? 'instance'} ${consumer.project}/${consumer.name}`;
  return {
    key: `leak ${key}`,
    code: 'RoomLeaked',
    subject,
    host,
    message: `room on host ${host} is held for ${subject}, incarnation ${consumer.incarnation}, but ${why}`,
    cause: mayGo
      ? 'its release was interrupted'
      : 'its host has not yet reported that nothing is left of it: is its agent connected?',
    ...(mayGo
      ? {
          repair: {
            what: `gives back the room of ${subject} on host ${host}`,
            plan: (now) => {
              const entry = now.get('allocation', key);
              if (!entry || whyNobody(now, entry.value) === undefined) return null;
              if (consumer.kind === 'task' || isOutsideGroup(host)) return { changes: release(entry) };
              // A host that exists again has to report first.
              const hostKey = keys.host(host);
              if (now.get('host', hostKey)) return null;
              return { changes: release(entry), conditions: [{ key: hostKey, ifRevision: 0 }] };
            },
          },
        }
      : {}),
  };
}

function whyNobody(snapshot: Snapshot, { consumer, host }: Allocation): string | undefined {
  if (consumer.kind === 'outside') {
    if (snapshot.get('outsideConsumer', keys.outsideConsumer(consumer.id)) === undefined)
      return 'that consumer of the Placement API no longer exists';
    return isOutsideGroup(host) || snapshot.get('host', keys.host(host)) ? undefined : 'that host no longer exists';
  }
  if (consumer.kind === 'task') {
    const task = snapshot.get('task', keys.task(consumer.project, consumer.name))?.value;
    if (task?.metadata.id !== consumer.id) return 'that task no longer exists';
    return task.status.phase === 'Placed' ? undefined : `that task is ${task.status.phase}`;
  }
  if (consumer.kind === 'volume') {
    const volume = snapshot.get('volume', keys.volume(consumer.project, consumer.name))?.value;
    if (volume?.metadata.id !== consumer.id) return 'that volume no longer exists';
    return volume.status.host === host ? undefined : `that volume is on ${volume.status.host ?? 'no host'}`;
  }
  const instance = snapshot.get('instance', keys.instance(consumer.project, consumer.name))?.value;
  if (instance?.metadata.id !== consumer.id) return 'that instance no longer exists';
  const { status } = instance;
  if (status.host !== host)
    return `that instance is ${status.host === undefined ? 'on no host' : `on host ${status.host}`}`;
  return status.incarnation === consumer.incarnation
    ? undefined
    : `that instance is in incarnation ${status.incarnation}`;
}
