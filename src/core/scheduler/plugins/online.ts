// online: the host's agent is heard, so that what is placed there is also started there.

import { conditionOf } from '../../state/conditions.ts';
import { fits, type Plugin, refuse } from '../framework.ts';

export const online: Plugin = {
  name: 'online',
  filter({ host }) {
    const ready = conditionOf(host.value.status.conditions, 'Ready');
    if (ready?.status === 'True') return fits;
    if (!ready) return refuse('HostNeverSeen', 'its agent has never registered');
    return refuse('HostNotReady', ready.message);
  },
};
