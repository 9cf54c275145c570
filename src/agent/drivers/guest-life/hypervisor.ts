// The seam between what all guests have in common (record, console, ports: this folder) and what runs them: QEMU by hand, libvirt, zones of
// illumos, or a container engine. It starts and ends what has been made before; it decides nothing, and knows guests by their record alone.

import type { Duplex } from 'node:stream';
import type { LiveKind } from '../../../api/resources/host.ts';
import type { Accelerator, LiveMachine, PublishedPort } from '../../../api/agent-protocol.ts';
import type { Logger } from '../../../base/log.ts';
import type { GuestCounters } from '../../../api/guests/guest-usage.ts';
import type { HostNetwork } from '../../network/host-network.ts';
import type { CachedImage } from '../../images/image-cache.ts';
import type { GuestAccess } from '../access.ts';
import type { Fingerprint, GuestSpec, GuestVolume } from '../driver.ts';
import type { DriverError, DriverErrorCode } from '../../host/driver-error.ts';
import type { BootMarks } from './boot-marks.ts';
import type { GuestAgentUse } from './ways-in/guest-agent.ts';
import type { GuestRecord } from './guest-record.ts';

/** How a guest ended by itself. */
export type GuestEnd = NonNullable<GuestRecord['guestEnd']>;

/** A machine that may run. */
export interface Machine {
  readonly record: GuestRecord;
  /** Of its files; without symbolic links. */
  readonly directory: string;
  readonly log: Logger;
}

export interface RunEnd {
  /** `detached`: the agent no longer follows the machine, which may run on. */
  readonly cause: 'guest-shutdown' | 'other' | 'detached';
  /** How it ended, for people. */
  readonly detail: string;
  /** The state of the guest after it, if the hypervisor knows; absent: it follows from `cause`. */
  readonly verdict?: { readonly state: 'exited' | 'failed'; readonly reason: Trouble };
}

/** What is wrong with a machine that runs: a code and a sentence. */
export type Trouble = NonNullable<GuestRecord['reason']>;

/** A volume that a machine has open. */
export interface OpenVolume {
  readonly volumeId: string;
  readonly path: string;
  readonly readOnly: boolean;
  /** False: the guest does not have it any more, or not yet, and its file is still open. */
  readonly attached: boolean;
}

/**
 * The volumes of a machine that runs. Every function throws `DriverError`: `NotPossible` and `DiskFull` where nothing was done,
 * `HypervisorFailed` when that is unknown. Either way it is asked again later.
 */
export interface RunVolumes {
  /** As they really are, also when another process opened them. */
  open(): Promise<readonly OpenVolume[]>;
  attach(volume: GuestVolume): Promise<void>;
  /** Resolves when its file is closed. A guest that does not let go in time is not forced to. */
  detach(volumeId: string, signal: AbortSignal): Promise<void>;
  grow(volumeId: string, sizeBytes: number): Promise<void>;
  snapshot(volumeId: string, act: 'make' | 'remove', name: string): Promise<void>;
  /** The guest let go of one, perhaps long after it was asked to. */
  onGone(listener: () => void): void;
}

/** Holds the processors of a machine still, with all that it has in memory. */
export interface RunSuspension {
  /** Resolves when they stand still. Throws `NotPossible` when something else holds them. */
  suspend(): Promise<void>;
  /** Resolves when they do not stand still for a wish any more. */
  resume(): Promise<void>;
  /** Whether its processors are paused on request, by any program: reported when it is known, and at each change. */
  onChange(listener: (suspended: boolean) => void): void;
}

/** The input of the source of a live move. */
export interface RunSend {
  readonly bytesPerSecondMax?: number | undefined;
  dial(name: string): Promise<Duplex>;
  onProgress(seen: { readonly bytes: number; readonly ofBytes: number }): void;
  assertUnderWay(): void;
  /** Awaited while the machine is paused, before its memory can be complete on the target. */
  onHandOver(): Promise<void>;
}

/** Live moves of a machine. All functions throw `DriverError`. */
export interface RunLive {
  parts(): Promise<Pick<LiveMachine, 'parts' | 'disks' | 'memoryMiB'>>;
  /**
   * On the target, for a machine that was started as `incoming`: resolves when it waits for its memory. Throws `NotPossible` when the machines
   * differ.
   */
  expect(machine: LiveMachine): Promise<void>;
  /** On the target: resolves when everything has arrived; the machine is paused. */
  received(signal: AbortSignal): Promise<void>;
  /** On the source: resolves when everything was sent, with the milliseconds for which the machine has been paused. After an error, call `settle`. */
  send(call: RunSend, signal: AbortSignal): Promise<number>;
  /** On the source: whether the machine is paused and all of its memory was sent. */
  isSent(): Promise<boolean>;
  /**
   * On the source: cleans up after a move that has `failed`, or one of an earlier agent that may be `found`, and resumes the machine. False: the
   * machine stays paused, because its memory may be complete on the target; never when the move is `over`.
   */
  settle(why: 'failed' | 'found' | 'over'): Promise<boolean>;
}

/** The memory of a machine, written to a file and read from it. All functions throw `DriverError`. */
export interface RunMemory {
  /**
   * Of a suspended machine: resolves when everything is in the file, and on the disk. Returns the bus address of each volume, which the machine needs when
   * it reads the file. After an error, call `giveUp`.
   */
  save(path: string, signal: AbortSignal): Promise<ReadonlyMap<string, number>>;
  /** Cleans up after a save that has failed, or one of an earlier agent; the machine runs. */
  giveUp(): Promise<void>;
  /** For a machine that was started as `incoming`: resolves when it has its memory; the machine is suspended. */
  load(path: string, signal: AbortSignal): Promise<void>;
}

/** One run of one machine, from its start or its adoption to its end. */
export interface Run {
  /** What it was found by, kept in the record. */
  readonly process: GuestRecord['process'];
  /** Resolves once the hypervisor has said that it is the right machine, or the run has ended. */
  readonly connected: Promise<void>;
  readonly ended: Promise<RunEnd>;
  /**
   * Resolves when its guest has ended by itself and what ran it stays, so that the reason is not lost: to be ended once it is recorded. Absent:
   * nothing stays. A `Trouble`: its hypervisor stopped it for good, and why.
   */
  readonly guestEnded?: Promise<GuestEnd | Trouble>;
  /** What keeps it from running, as its disk: told at once and at each change; undefined when all is well. */
  onTrouble(listener: (trouble: Trouble | undefined) => void): void;
  /** Where its boot stands, told at once and at each change; absent: its console tells. */
  onMarks?(listener: (marks: BootMarks) => void): void;
  /** Reports the guest's address when it is known without the console, and each change; not `sure`: used only when nothing else is known. */
  onAddress?(listener: (address: string, sure: boolean) => void): void;
  alive(): Promise<boolean>;
  /** How it stands, in the hypervisor's own words. Never throws. */
  describe?(): Promise<string>;
  /** Current usage; undefined: unknown now. Absent: cannot be measured. */
  usage?(): Promise<GuestCounters | undefined>;
  /** Presses the power button. */
  powerDown(): Promise<void>;
  /** Ends it, whatever it does. Resolves when it is gone. */
  end(): Promise<void>;
  /** A TCP connection to a port of it, also one that is not published. Absent where there is no such way. */
  dial?(port: number): Promise<Duplex>;
  /** Resolves once the guest has accepted a connection at this port. Absent: one by `dial` that it does not accept is refused, or closed at once. */
  reach?(port: number, signal: AbortSignal): Promise<void>;
  /** Present where the hypervisor can. */
  readonly suspension?: RunSuspension;
  /** Present where the hypervisor has them. */
  readonly volumes?: RunVolumes;
  readonly live?: RunLive;
  /** Present where the hypervisor `saves`. */
  readonly memory?: RunMemory;
  /** Lets go; it runs on. */
  detach(): void;
}

/** What is known of the guests that are to be got into. */
export interface GuestsInside {
  /** The guest, which runs. Throws `NoSuchGuest` or `NotPossible`. */
  running(instanceId: string): { readonly record: GuestRecord; readonly run: Run };
  machineOf(record: GuestRecord): Promise<Machine>;
  /** Where published ports listen. */
  readonly bindAddress: string;
}

/** Where a machine listens for us. */
export type MachineSocket = 'console' | 'vnc' | 'guestAgent' | 'runner' | 'runnerSerial';

export interface MakeCall {
  readonly spec: GuestSpec;
  readonly directory: string;
  /** As they were taken for this guest. */
  readonly ports: readonly PublishedPort[];
  /** Its place in the host's network, where it has one. */
  readonly network?: GuestRecord['network'];
  readonly signal: AbortSignal;
  readonly onProgress: (progress: string) => void;
  /** What it boots from, as soon as that is known; `image`: the file that its disk lies upon. */
  readonly onImage: (found: { readonly digest: string; readonly image?: GuestRecord['image'] }) => Promise<void>;
  /** Does one step, shown as a phase; throws `Aborted` after it when `signal` has. */
  readonly timed: <Result>(name: string, progress: string, act: () => Promise<Result>) => Promise<Result>;
  /** Does what this host's own disk and processor are needed for, and no network: as many at a time as they can take. */
  readonly locally: <Result>(act: () => Promise<Result>) => Promise<Result>;
}

export interface Hypervisor {
  readonly name: string;
  /** What its own failures are called. Default: HypervisorFailed. */
  readonly failureCode?: DriverErrorCode;
  /** Its machines can have volumes: those of their records when they start, and others while they run. */
  readonly volumes?: true;
  /** The usage of its machines can be measured. */
  readonly measures?: true;
  /** Its machines can be suspended. */
  readonly suspends?: true;
  /** The memory of its machines can be saved to a file. */
  readonly saves?: true;
  /** Disks of its machines are files that mean the same on another host. */
  readonly migrates?: true;
  /**
   * Its machines can move live. `socketOf`: the socket, below the machine's directory, at which a waiting machine listens for a disk or for
   * `memory`.
   */
  readonly live?: {
    kind(): Promise<LiveKind>;
    socketOf(machine: Machine, name: string): Promise<string>;
  };
  /** Its machines can have a disk with a program, and the runner's port. */
  readonly runs?: true;
  /** What guests are connected to, where that is more than a network of the hypervisor's own. */
  readonly network?: HostNetwork;
  fingerprint(): Promise<Fingerprint>;
  /** Instances that it has something of, also when there is no record of them. Throws when it cannot see; absent: records are all there is. */
  known?(): Promise<readonly string[]>;
  /** As the last fingerprint found it. Throws `HypervisorFailed`. */
  chosenAccelerator(): Promise<Accelerator>;
  /** KVM could not run a machine, of which nothing was ever heard: it is started again under TCG, and KVM is looked at again. Absent: that is not to be. */
  fallBack?(from: { readonly image: string; readonly reason: string }): Promise<void>;
  /** Grows when what `fingerprint` says may have changed. */
  changes?(): number;
  /** Makes what a guest consists of; absent: the disk and the seed of a virtual machine. What an interrupted creation left is used, or replaced. */
  make?(call: MakeCall): Promise<void>;
  /** `onProcess` runs as soon as there is anything, before it is asked for more. */
  start(
    machine: Machine,
    call: {
      readonly accelerator: Accelerator;
      /** Where published ports listen. */
      readonly bindAddress: string;
      /** It waits for the memory of another machine, and then stays paused. */
      readonly incoming?: boolean;
      readonly onProcess: (process: GuestRecord['process']) => Promise<void>;
    },
  ): Promise<Run>;
  /** The machine of an agent that died; null: it does not run. One whose end is known may be found as a run that has ended. `thorough`: also when the record does not say where it is. */
  find(machine: Machine, thorough: boolean): Promise<Run | null>;
  /** What runs of a guest whose record cannot be read, for people; undefined: nothing. Throws when it cannot see. */
  running(guest: { readonly instanceId: string; readonly directory: string }): Promise<string | undefined>;
  /** Ends what no run looks after, and makes the hypervisor forget the machine. `uuid` missing: whatever is there. */
  purge(machine: { readonly directory: string; readonly uuid?: string }): Promise<void>;
  /** What a machine was given of the file of a volume is taken from it: it has it not open, and is not to have it any more. Absent: it is given nothing. */
  takeVolume?(from: { readonly directory: string; readonly volume: GuestVolume }): Promise<void>;
  /** Why one that was started did not come up. */
  startError(machine: Machine, end: RunEnd, bindAddress: string): Promise<DriverError>;
  /** What the hypervisor last said of it, as one line; empty when nothing. */
  lastWords(directory: string): Promise<string>;
  /** The path of a unix socket. Throws `DriverError` when the machine has none. Absent: machines have no sockets for us. */
  socketOf?(machine: Machine, socket: MachineSocket): Promise<string>;
  /** How a guest's agent is asked where the hypervisor holds its socket itself. Absent: by that socket. */
  guestAgent?(machine: Machine): Promise<GuestAgentUse>;
  /** The ways into its guests, where they are not by a machine's sockets. */
  access?: (into: GuestsInside) => GuestAccess;
  /** The process that runs the guest, so that somebody keeps its console log bounded as long as it lives. Absent: the log is written by the agent. */
  consoleWriter?(machine: Machine, run: Run): Promise<GuestRecord['process']>;
  /** Keeps what it writes beside the console within bounds. */
  trimLogs(directory: string): Promise<void>;

  /** Once the machines of earlier runs were found: sees to what they need of this host besides a network. A second time is harmless. */
  settle?(): Promise<void>;
  /** Lets go; machines run on. */
  close?(): void;

  // What follows is for hypervisors that are not on Linux or bring disks and networks of their own.

  /** Throws when it cannot see its machines. Absent: it always can. */
  assertSight?(): Promise<void>;
  /** What of this it cannot give; told before anything is made. */
  refuse?(spec: GuestSpec): DriverError | undefined;
  /** Instead of an overlay among the machine's files. Whole or not at all, and one that is there is kept; `purge` takes it away. */
  makeDisk?(call: {
    readonly directory: string;
    readonly uuid: string;
    readonly image: CachedImage;
    readonly spec: GuestSpec;
    readonly signal: AbortSignal;
  }): Promise<void>;
  /** Of the guest's network interface. */
  macAddress?(uuid: string): string;
  /** Changes with every boot of the host. */
  hostBootId?(): Promise<string>;
  /** Gives the room of the first bytes of a console log back; every other byte stays where it is. */
  dropLogStart?(path: string, lengthBytes: number): Promise<{ readonly ok: boolean; readonly output: string }>;
}
