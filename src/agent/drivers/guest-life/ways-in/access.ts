// The ways into guests: by the sockets that a hypervisor has for its machines (serial console, screen, guest agent) and by their ports; or as
// the hypervisor has them. What a guest says is read from its log, however it comes there.

import { join } from 'node:path';
import { drained } from '../../../../base/drained.ts';
import type { GuestAccess } from '../../access.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { connectTcp } from './connect-tcp.ts';
import { assertStaysOpen } from './stays-open.ts';
import { watchFile } from './console-log.ts';
import { runByGuestAgent } from './guest-exec.ts';
import { guestFiles } from '../guest-files.ts';
import type { Hands } from '../hands.ts';
import type { GuestsInside } from '../hypervisor.ts';
import { openMachineSocket, runningGuest } from './machine-sockets.ts';
import { RunnerPorts } from './runner-ports.ts';
import { shareSockets } from './shared-sockets.ts';

export function accessTo(hands: Hands): GuestAccess {
  const { hypervisor, bindAddress, machineOf } = hands;
  const inside: GuestsInside = {
    running: (instanceId) => runningGuest(hands, instanceId),
    machineOf,
    bindAddress,
  };
  return {
    watchLog(instanceId, listener, signal) {
      void hands.directoryOf(instanceId).then((directory) => {
        if (signal.aborted) return;
        const watcher = watchFile(join(directory, guestFiles.console), hands.clock, listener);
        signal.addEventListener('abort', () => watcher?.close(), { once: true });
      });
    },
    dial: (instanceId, port) => dial(inside, instanceId, port),
    reach: (instanceId, port, signal) => reach(hands, { inside, instanceId, port, signal }),
    ...(hypervisor.socketOf === undefined ? {} : bySockets(hands)),
    ...hypervisor.access?.(inside),
  };
}

/** By a published port where there is one: that way costs the hypervisor nothing. */
async function dial({ running, bindAddress }: GuestsInside, instanceId: string, port: number) {
  const { record, run } = running(instanceId);
  const published = record.ports.find((each) => each.protocol === 'tcp' && each.guestPort === port);
  if (published === undefined && run.dial !== undefined) return run.dial(port);
  if (published === undefined)
    throw new DriverError('NotPossible', `port ${port} of the guest cannot be reached: publish it`);
  const host = bindAddress === '0.0.0.0' ? '127.0.0.1' : bindAddress;
  return connectTcp({ host, port: published.hostPort }, `port ${port} of the guest`);
}

interface Reach {
  readonly inside: GuestsInside;
  readonly instanceId: string;
  readonly port: number;
  readonly signal: AbortSignal;
}

async function reach({ clock }: Hands, { inside, instanceId, port, signal }: Reach): Promise<void> {
  const { record, run } = inside.running(instanceId);
  if (run.reach !== undefined) return run.reach(port, signal);
  // In the host's own network nothing is between this agent and the guest, and a published port would be forwarded by this agent.
  const direct = record.network === undefined ? undefined : run.dial;
  const stream = await (direct === undefined ? dial(inside, instanceId, port) : direct(port));
  await assertStaysOpen(stream, clock, signal, `port ${port} of the guest`);
}

function bySockets(hands: Hands): GuestAccess {
  const { clock } = hands;
  const runnerPorts = new RunnerPorts(hands, clock);
  // The console's socket is for keys alone.
  const keyboards = shareSockets(
    (id) => openMachineSocket(hands, id, 'console'),
    (socket) => void socket.resume(),
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
    screen: (instanceId) => openMachineSocket(hands, instanceId, 'vnc'),
    ...(hands.hypervisor.runs ? { openRunner: (instanceId) => runnerPorts.open(instanceId) } : {}),
    async exec(instanceId, request) {
      const { talk, release } = await hands.guestAgents.use(instanceId);
      try {
        return await runByGuestAgent(talk, request, { clock, release });
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}
