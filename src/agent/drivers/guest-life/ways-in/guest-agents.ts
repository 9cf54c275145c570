// The guest agents of this host's machines: each takes one connection at a time, so all who have something to ask share it.

import type { Socket } from 'node:net';
import type { Clock } from '../../../../base/clock.ts';
import type { Prng } from '../../../../base/prng.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { type GuestAgentTalk, type GuestAgentUse, talkToGuestAgent } from './guest-agent.ts';
import { type Machines, openMachineSocket, runningGuest } from './machine-sockets.ts';
import { shareSockets } from './shared-sockets.ts';

export interface GuestAgents {
  /** Throws `NoSuchGuest`, or `NotPossible`. That there is an agent at all is known only when it is asked. */
  use(instanceId: string): Promise<GuestAgentUse>;
}

export function createGuestAgents(
  machines: Machines,
  { clock, prng }: { readonly clock: Clock; readonly prng: Prng },
): GuestAgents {
  const { hypervisor, machineOf } = machines;
  const talks = new WeakMap<Socket, GuestAgentTalk>();
  const sockets = shareSockets(
    (instanceId) => openMachineSocket(machines, instanceId, 'guestAgent'),
    (socket) => void talks.set(socket, talkToGuestAgent(socket, { clock, syncId: () => 1 + prng.below(2 ** 31) })),
  );
  return {
    async use(instanceId) {
      if (hypervisor.guestAgent !== undefined) {
        const { record } = runningGuest(machines, instanceId);
        return hypervisor.guestAgent(await machineOf(record));
      }
      const { socket, release } = await sockets.use(instanceId);
      const talk = talks.get(socket);
      if (talk === undefined) throw new DriverError('Internal', 'a guest agent without a talk');
      return { talk, release };
    },
  };
}
