// online: the host's agent is connected, so that an instance placed there is started.

import { conditionOf } from '../../state/conditions.ts';
import { type HostPlugin, refuse } from '../framework.ts';

export const online: HostPlugin = {
  name: 'online',
  summary: "the host's agent is connected",
  dependsOn: 'host',
  prepare: (_request, { hosts }) => ({
    filter(slot) {
      const ready = conditionOf(hosts[slot]?.status.conditions ?? [], 'Ready');
      if (ready?.status === 'True') return null;
      return ready ? refuse('HostNotReady', ready.message) : refuse('HostNeverSeen', 'its agent has never registered');
    },
  }),
};
