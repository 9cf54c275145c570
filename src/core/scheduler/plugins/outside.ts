// outside: hosts of an inventory have no agent. They hold room for tasks; a guest of ours could not start there.

import { type HostPlugin, refuse } from '../framework.ts';

export const outside: HostPlugin = {
  name: 'outside',
  summary: 'the host has an agent, or only room is requested',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    if (terms.outside) return null;
    return {
      filter(slot) {
        const origin = hosts[slot]?.status.outside;
        if (!origin) return null;
        return refuse('HostOutside', `it comes from inventory ${origin.inventory}, has no agent, and takes tasks only`);
      },
    };
  },
};
