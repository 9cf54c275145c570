// The host's ends of the runners' ports, by their sockets. A hypervisor takes one connection to a socket at a time and leaves a second one
// waiting without a word, so a second one is refused here.

import type { Socket } from 'node:net';
import { DriverError } from '../../../host/driver-error.ts';
import { type Machines, openMachineSocket, runningGuest } from './machine-sockets.ts';

export class RunnerPorts {
  readonly #machines: Machines;
  readonly #opening = new Set<string>();
  readonly #open = new Map<string, Socket>();

  constructor(machines: Machines) {
    this.#machines = machines;
  }

  /** Throws `NoSuchGuest`, or `NotPossible`: the guest does not run, has no program, or its port is open already. */
  async open(instanceId: string): Promise<Socket> {
    const { record } = runningGuest(this.#machines, instanceId);
    if (record.runDisk === undefined)
      throw new DriverError('NotPossible', `${instanceId} has no runner's port: it was created without a program`);
    if (this.#opening.has(instanceId) || this.#open.get(instanceId)?.destroyed === false)
      throw new DriverError('NotPossible', `the runner's port of ${instanceId} is open already`);
    this.#opening.add(instanceId);
    try {
      const socket = await openMachineSocket(this.#machines, instanceId, 'runner');
      socket.on('error', () => {}); // its end is told by 'close'
      socket.once('close', () => {
        if (this.#open.get(instanceId) === socket) this.#open.delete(instanceId);
      });
      this.#open.set(instanceId, socket);
      return socket;
    } finally {
      this.#opening.delete(instanceId);
    }
  }
}
