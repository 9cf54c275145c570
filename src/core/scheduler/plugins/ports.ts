// ports: no port of the host that the instance asks for is another's. Ports that nobody chose are the agent's to find.

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
