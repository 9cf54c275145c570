// The host's ends of the runners' ports, by their sockets. A hypervisor takes one connection to a socket at a time and leaves a second one
// waiting without a word, so a second one is refused here.

import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Clock, sleep } from '../../../../base/clock.ts';
import { DriverError } from '../../../host/driver-error.ts';
import type { MachineSocket } from '../hypervisor.ts';
import { type Machines, openMachineSocket, runningGuest } from './machine-sockets.ts';
import { joinRunnerWays } from './runner-line.ts';

/** QEMU keeps one connection waiting; while it has not seen that the last ones were closed, the kernel refuses more. It sees that within milliseconds. */
const busyTriesMax = 100;
const busyWaitMs = 20;

export class RunnerPorts {
  readonly #machines: Machines;
  readonly #clock: Clock;
  readonly #opening = new Set<string>();
  readonly #open = new Map<string, Duplex>();

  constructor(machines: Machines, clock: Clock) {
    this.#machines = machines;
    this.#clock = clock;
  }

  /** Throws `NoSuchGuest`, or `NotPossible`: the guest does not run, has no program, or its port is open already. */
  async open(instanceId: string): Promise<Duplex> {
    const { record } = runningGuest(this.#machines, instanceId);
    if (record.runDisk === undefined)
      throw new DriverError('NotPossible', `${instanceId} has no runner's port: it was created without a program`);
    if (this.#opening.has(instanceId) || this.#open.get(instanceId)?.destroyed === false)
      throw new DriverError('NotPossible', `the runner's port of ${instanceId} is open already`);
    this.#opening.add(instanceId);
    try {
      const line = await this.#openBoth(instanceId);
      line.once('close', () => {
        if (this.#open.get(instanceId) === line) this.#open.delete(instanceId);
      });
      this.#open.set(instanceId, line);
      return line;
    } finally {
      this.#opening.delete(instanceId);
    }
  }

  async #openBoth(instanceId: string): Promise<Duplex> {
    const port = await this.#connect(instanceId, 'runner');
    try {
      return joinRunnerWays(port, await this.#connect(instanceId, 'runnerSerial'));
    } catch (error) {
      port.destroy();
      throw error;
    }
  }

  async #connect(instanceId: string, socket: MachineSocket): Promise<Socket> {
    for (let tries = 1; ; tries++) {
      try {
        return await openMachineSocket(this.#machines, instanceId, socket);
      } catch (error) {
        if (tries === busyTriesMax || !isBusy(error)) throw error;
        await sleep(this.#clock, busyWaitMs);
      }
    }
  }
}

function isBusy(error: unknown): boolean {
  const cause = error instanceof DriverError ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'EAGAIN';
}
