// An instance recorded as running must have been reported as running in the current session of its host's agent.

import { isReady } from '../state/conditions.ts';
import { keys } from '../state/keys.ts';
import type { Rule } from './fault.ts';

export const unconfirmedGuests: Rule = function* (snapshot) {
  for (const { value } of snapshot.list('instance')) {
    const { metadata, status } = value;
    const host = snapshot.get('host', keys.host(status.host ?? ''))?.value;
    const ready = host && isReady(host.status);
    const up = status.phase === 'Running' || status.phase === 'Suspended';
    if (!up || !ready || status.report?.epoch === host.status.epoch) {
      yield undefined;
      continue;
    }
    yield {
      key: `unconfirmed ${metadata.id} ${host.status.epoch}`,
      code: 'GuestUnconfirmed',
      subject: `instance ${metadata.project}/${metadata.name}`,
      host: host.metadata.name,
      message: `it is recorded as running on host ${host.metadata.name}, whose agent has not reported it since the start of session ${host.status.epoch}`,
      cause: 'the agent cannot find its guest, or cannot reach its driver: see its log',
    };
  }
};
