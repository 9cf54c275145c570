// ports: no host port that the instance requests is in use. Ports without a number are chosen by the agent.

import { refuse, type RoomPlugin } from '../framework.ts';

export const ports: RoomPlugin = {
  name: 'ports',
  summary: 'the requested host ports are free',
  dependsOn: 'room',
  prepare({ ports: wanted }, fleet) {
    if (wanted.length === 0) return null;
    return {
      filter(slot) {
        const used = fleet.ports[slot];
        if (!used) return null;
        for (const port of wanted)
          if (used.has(port)) return refuse('PortConflict', `its port ${port} is used by another instance`);
        return null;
      },
    };
  },
};
