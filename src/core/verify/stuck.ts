// A transition must end: of an instance that is being deleted, created, started or stopped on a connected host.

import { isReady } from '../state/conditions.ts';
import { keys } from '../state/keys.ts';
import type { Rule } from './fault.ts';

const onTheWay: ReadonlySet<string> = new Set(['Scheduled', 'Stopping', 'Deleting']);

export const stuck: Rule = function* (snapshot) {
  for (const { value } of snapshot.list('instance')) {
    const { metadata, status } = value;
    const host = snapshot.get('host', keys.host(status.host ?? ''))?.value;
    const heard = !host || isReady(host.status);
    const deleting = metadata.deletionRequestedAtMs !== undefined;
    if (!(onTheWay.has(status.phase) || deleting) || !heard) {
      yield undefined;
      continue;
    }
    yield {
      // A new key for each step, so that an instance that makes progress does not age.
      key: `stuck ${metadata.id} ${status.incarnation} ${status.phase} ${deleting}`,
      code: 'Stuck',
      subject: `instance ${metadata.project}/${metadata.name}`,
      ...(host ? { host: host.metadata.name } : {}),
      message: deleting
        ? 'it is being removed and is still there'
        : `it is ${status.phase} and there was no further report`,
      cause: host
        ? `its host's agent is connected, but has not done it: see "berth events" and the agent's log on host ${host.metadata.name}`
        : 'it is bound to no existing host, and nothing has ended it',
    };
  }
};
