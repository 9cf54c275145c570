// The ways into guests: by the sockets that a hypervisor has for its machines (serial console, screen, guest agent) and by their ports; or as
// the hypervisor has them. What a guest says is read from its log, however it comes there.

import type { Socket } from 'node:net';
import { join } from 'node:path';
import { drained } from '../../../base/drained.ts';
import { describeError } from '../../../base/log.ts';
import type { GuestAccess } from '../access.ts';
import { DriverError } from '../driver.ts';
import { connectSocket } from './connect-socket.ts';
import { connectTcp } from './connect-tcp.ts';
import { watchFile } from './console-log.ts';
import { noSuchGuest } from './errors.ts';
import { type GuestAgentTalk, talkToGuestAgent } from './guest-agent.ts';
import { runByGuestAgent } from './guest-exec.ts';
import { guestFiles } from './guest-files.ts';
import type { Hands } from './hands.ts';
import type { GuestsInside, Hypervisor, MachineSocket } from './hypervisor.ts';
import { shareSockets } from './shared-sockets.ts';

export function accessTo(hands: Hands): GuestAccess {
  const { hypervisor, slots, bindAddress, machineOf } = hands;
  const inside: GuestsInside = {
    running(instanceId) {
      const slot = slots.get(instanceId);
      if (slot?.record === undefined) throw noSuchGuest('get into', instanceId);
      if (slot.run === undefined) throw new DriverError('NotPossible', `guest ${instanceId} does not run`);
      return { record: slot.record, run: slot.run };
    },
    machineOf,
    bindAddress,
  };
  const { socketOf } = hypervisor;
  return {
    watchLog(instanceId, listener, signal) {
      void hands.directoryOf(instanceId).then((directory) => {
        if (signal.aborted) return;
        const watcher = watchFile(join(directory, guestFiles.console), listener);
        signal.addEventListener('abort', () => watcher?.close(), { once: true });
      });
    },
    dial: (instanceId, port) => dial(inside, instanceId, port),
    ...(socketOf === undefined ? {} : bySockets(hands, inside, socketOf)),
    ...hypervisor.access?.(inside),
  };
}

/** By a published port where there is one: that way costs the hypervisor nothing. */
async function dial({ running, bindAddress }: GuestsInside, instanceId: string, port: number) {
  const { record, run } = running(instanceId);
  const published = record.ports.find((each) => each.protocol === 'tcp' && each.guestPort === port);
  if (published === undefined && run.dial !== undefined) return run.dial(port);
  if (published === undefined)
    throw new DriverError('NotPossible', `port ${port} of ${instanceId} cannot be reached: publish it`);
  const host = bindAddress === '0.0.0.0' ? '127.0.0.1' : bindAddress;
  return connectTcp({ host, port: published.hostPort }, `port ${port} of ${instanceId}`);
}

function bySockets(
  { clock, prng }: Hands,
  { running, machineOf }: GuestsInside,
  socketOf: NonNullable<Hypervisor['socketOf']>,
): GuestAccess {
  const open = async (instanceId: string, socket: MachineSocket): Promise<Socket> => {
    const { record } = running(instanceId);
    try {
      return await connectSocket(await socketOf(await machineOf(record), socket));
    } catch (error) {
      if (error instanceof DriverError) throw error;
      throw new DriverError(
        'NotPossible',
        `cannot reach the ${socketNames[socket]} of ${instanceId} (${describeError(error)}); a guest that an older Berth started has none: stop and start it`,
        error,
      );
    }
  };
  // The console's socket is for keys alone.
  const keyboards = shareSockets(
    (id) => open(id, 'console'),
    (socket) => void socket.resume(),
  );
  const talks = new WeakMap<Socket, GuestAgentTalk>();
  const agents = shareSockets(
    (id) => open(id, 'guestAgent'),
    (socket) => void talks.set(socket, talkToGuestAgent(socket, { clock, syncId: () => 1 + prng.below(2 ** 31) })),
  );
  return {
    async typeInto(instanceId) {
      const { socket, release } = await keyboards.use(instanceId);
      return {
        async type(keys) {
          if (socket.destroyed) throw new DriverError('NotPossible', `the console of ${instanceId} takes no more keys`);
          if (!socket.write(keys)) await drained(socket);
        },
        close: release,
      };
    },
    screen: (instanceId) => open(instanceId, 'vnc'),
    async exec(instanceId, request) {
      const { socket, release } = await agents.use(instanceId);
      const talk = talks.get(socket);
      if (talk === undefined) throw new DriverError('Internal', 'a guest agent without a talk');
      try {
        return await runByGuestAgent(talk, request, { clock, release });
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}

const socketNames = { console: 'console', vnc: 'screen', guestAgent: 'guest agent' } as const;
