// The seam between what all virtual machines have in common (record, disk, seed, console, ports: this folder) and what runs them: QEMU by
// hand, or libvirt. It starts and ends machines whose files are there; it decides nothing, and knows them by their uuid alone.

import type { Accelerator } from '../../../api/agent-protocol.ts';
import type { Logger } from '../../../base/log.ts';
import type { DriverError, Fingerprint } from '../driver.ts';
import type { GuestRecord } from './guest-record.ts';

/** A machine that may run. */
export interface Machine {
  readonly record: GuestRecord;
  /** Of its files; without symbolic links. */
  readonly directory: string;
  readonly log: Logger;
}

export interface RunEnd {
  /** `detached`: nobody looks any more; the machine may run on. */
  readonly cause: 'guest-shutdown' | 'guest-panic' | 'other' | 'detached';
  /** How it ended, for people. */
  readonly detail: string;
}

/** What is wrong with a machine that runs: a code and a sentence. */
export type Trouble = NonNullable<GuestRecord['reason']>;

/** One run of one machine, from its start or its adoption to its end. */
export interface Run {
  /** What it was found by, kept in the record. */
  readonly process: GuestRecord['process'];
  /** Resolves once the hypervisor has said that it is the right machine, or the run has ended. */
  readonly connected: Promise<void>;
  readonly ended: Promise<RunEnd>;
  /** Whether it can use its disk: told at once and at each change; undefined when all is well. */
  onTrouble(listener: (trouble: Trouble | undefined) => void): void;
  /** Whoever knows the guest's address without its console tells it here, once. */
  onAddress?(listener: (address: string) => void): void;
  alive(): Promise<boolean>;
  /** Presses the power button. */
  powerDown(): Promise<void>;
  /** Ends it, whatever it does. Resolves when it is gone. */
  end(): Promise<void>;
  /** Lets go; it runs on. */
  detach(): void;
}

export interface Hypervisor {
  readonly name: string;
  fingerprint(): Promise<Fingerprint>;
  /** The same until the agent restarts. Throws `HypervisorFailed`. */
  chosenAccelerator(): Promise<Accelerator>;
  /** `onProcess` runs as soon as there is anything, before it is asked for more. */
  start(
    machine: Machine,
    call: {
      readonly accelerator: Accelerator;
      /** Where published ports listen. */
      readonly bindAddress: string;
      readonly onProcess: (process: GuestRecord['process']) => Promise<void>;
    },
  ): Promise<Run>;
  /** The machine of an agent that died; null: it does not run. One whose end is known may be found as a run that has ended. `thorough`: also when the record does not say where it is. */
  find(machine: Machine, thorough: boolean): Promise<Run | null>;
  /** Ends what no run looks after, and makes the hypervisor forget the machine. `uuid` missing: whatever is there. */
  purge(machine: { readonly directory: string; readonly uuid?: string }): Promise<void>;
  /** Why one that was started did not come up. */
  startError(machine: Machine, end: RunEnd, bindAddress: string): Promise<DriverError>;
  /** What the hypervisor last said of it, as one line; empty when nothing. */
  lastWords(directory: string): Promise<string>;
  /** Keeps what it writes beside the console within bounds. */
  trimLogs(directory: string): Promise<void>;
}
