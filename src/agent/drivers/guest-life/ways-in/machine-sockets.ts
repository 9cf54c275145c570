// Connections to the sockets of a machine: its console, its screen, its guest agent, its runner's port. Says nothing on them.

import type { Socket } from 'node:net';
import { describeError } from '../../../../base/log.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { connectSocket } from '../../../host/connect-socket.ts';
import { noSuchGuest } from '../errors.ts';
import type { GuestRecord } from '../guest-record.ts';
import type { Hypervisor, Machine, MachineSocket, Run } from '../hypervisor.ts';
import type { Slots } from '../slots.ts';

export interface Machines {
  readonly slots: Slots;
  readonly hypervisor: Hypervisor;
  machineOf(record: GuestRecord): Promise<Machine>;
}

/** Throws `NoSuchGuest`, or `NotPossible` when it does not run. */
export function runningGuest(
  { slots }: Pick<Machines, 'slots'>,
  instanceId: string,
): { readonly record: GuestRecord; readonly run: Run } {
  const slot = slots.get(instanceId);
  if (slot?.record === undefined) throw noSuchGuest('get into', instanceId);
  if (slot.run === undefined) throw new DriverError('NotPossible', `guest ${instanceId} does not run`);
  return { record: slot.record, run: slot.run };
}

/** Throws as `runningGuest`, or `NotPossible`. */
export async function openMachineSocket(
  machines: Machines,
  instanceId: string,
  socket: MachineSocket,
): Promise<Socket> {
  const { record } = runningGuest(machines, instanceId);
  const { hypervisor, machineOf } = machines;
  if (hypervisor.socketOf === undefined)
    throw new DriverError('NotPossible', `${instanceId} has no ${socketNames[socket]}`);
  try {
    return await connectSocket(await hypervisor.socketOf(await machineOf(record), socket));
  } catch (error) {
    if (error instanceof DriverError) throw error;
    throw new DriverError(
      'NotPossible',
      `cannot reach the ${socketNames[socket]} of ${instanceId} (${describeError(error)}); a guest that an older Berth started has none: stop and start it`,
      error,
    );
  }
}

const socketNames = {
  console: 'console',
  vnc: 'screen',
  guestAgent: 'guest agent',
  runner: "runner's port",
  runnerSerial: 'second serial port',
} as const;
