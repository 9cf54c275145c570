// The contract of a driver: hands on one host. It does what it is told to one guest at a time and reports what it sees;
// it never decides what should run, and never touches a guest that is not its own. Every driver passes conformance.ts.

import type { FileHandle } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import type {
  Accelerator,
  AssignedContainer,
  GuestPort,
  GuestState,
  ImageSpec,
  LiveMachine,
  Phase,
  PublishedPort,
} from '../../api/agent-protocol.ts';
import type { Boot } from '../../api/instances/firmware.ts';
import type { BootOffer, LiveKind } from '../../api/resources/host.ts';
import type { GuestCredential } from '../images/credentials/image-credentials.ts';
import type { GuestUsage } from '../../api/guests/guest-usage.ts';
import type { DiskReader, ReceivedFile } from '../migration/moved-files.ts';
import type { GuestAccess } from './access.ts';

/** Everything needed to make one guest, with nothing left to look up. Ids come from the control plane and are checked by the agent. */
export interface GuestSpec {
  readonly instanceId: string;
  /** Which life of the instance this is; a guest of another incarnation is another guest. */
  readonly incarnation: number;
  readonly name: string;
  /** Its project. Absent: none, and it shares nothing with another guest. */
  readonly project?: string;
  readonly hostname: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  /** Size of the guest's own disk. 0: as large as the image. */
  readonly diskGiB: number;
  readonly imageName: string;
  readonly image: ImageSpec;
  /** Of its project, for its images. Never written to a disk. */
  readonly imageCredentials?: readonly GuestCredential[];
  /** Absent: a BIOS. */
  readonly firmware?: NonNullable<Boot['firmware']>;
  /** A virtual TPM 2.0. Absent: none. */
  readonly tpm?: true;
  /** `hostPort` 0: the driver picks a free one. */
  readonly ports: readonly GuestPort[];
  readonly sshKeys: readonly string[];
  /** cloud-init user-data (a script, #cloud-config or a MIME archive), passed on as it is. */
  readonly userData: string;
  /** Of a container image: what runs, the first with the network and the ports of all. Absent: one container of `image` alone. */
  readonly containers?: readonly GuestContainer[];
  /** Besides its own disk. They belong to the host: a driver never makes or removes one. */
  readonly volumes?: readonly GuestVolume[];
  /**
   * Of a guest with a program to run: a file, for this guest alone, whose bytes it reads from a disk with the serial number `runDiskSerial`.
   * It never changes, and who runs the guest may be made its owner. The guest also has a port for the runner (`GuestAccess.openRunner`).
   */
  readonly runDisk?: string;
  /** Of a guest that moved here: its disk, which stays where it is until the guest is created. Absent: a new one of the image. */
  readonly disk?: ReceivedFile;
  /** The incarnation whose disk it has: what the guest knows itself by, such as its network address, is that of then. Absent: its own. */
  readonly diskIncarnation?: number;
  /** The newest resize that these amounts include. Absent: none. */
  readonly resized?: number;
}

/** What a guest is to have from its next start. */
export interface GuestSize {
  readonly cpus: number;
  readonly memoryMiB: number;
  /** 0: as it is. A disk that is larger stays as it is. */
  readonly diskGiB: number;
  /** Shown as `Guest.resized` once it is done. */
  readonly order: number;
}

/** A container with the values of the secrets that its environment names. */
export type GuestContainer = Omit<AssignedContainer, 'env'> & { readonly env: Readonly<Record<string, string>> };

/** By which a guest finds the disk with its program. */
export const runDiskSerial = 'berth-run';
/** The name of the runner's virtio-serial port, as a guest sees it. */
export const runnerPort = 'berth.run.0';

/** A volume of the host, attached to a guest: a qcow2 file, which the guest finds by its name, or a file system, which its containers mount. */
export interface GuestVolume {
  readonly volumeId: string;
  readonly name: string;
  readonly path: string;
  readonly readOnly: boolean;
  /** In a live move to this host: the file that receives the contents. */
  readonly received?: ReceivedFile;
  /** In a live move to this host: the bus address. */
  readonly slot?: number;
}

/** What the driver sees of one guest. */
export interface Guest {
  readonly instanceId: string;
  readonly incarnation: number;
  readonly state: GuestState;
  /** True when something is left of this guest, and the driver cannot tell what: then `state` is `failed`, and `incarnation` is 0. */
  readonly damaged?: true;
  /** Why it is `exited` or `failed`, that it was `stopped` by force, or what is wrong with it while it is `running`: a CamelCase code and a sentence. */
  readonly reason?: { readonly code: string; readonly message: string };
  /** True once the guest itself said that its boot is over (cloud-init's end, the tiny image's greeting). */
  readonly ready: boolean;
  readonly address?: string;
  readonly ports: readonly PublishedPort[];
  readonly accelerator?: Accelerator;
  readonly imageDigest?: string;
  /** Ids of the volumes that it has, or has from its next start. A volume that it may still have open is among them. */
  readonly volumes?: readonly string[];
  readonly startedAtMs?: number;
  /** The order of its last resize. Absent: none. */
  readonly resized?: number;
  /** It is `suspended`, its memory is in a file, and nothing of it runs. */
  readonly saved?: true;
  /** Its memory may be complete on another host: it is paused until the result of this move is known. `revision`: of the order to send it. */
  readonly handedOver?: { readonly id: string; readonly revision: number };
  /** What took how long, in order: pull, clone, program, seed, start, boot. */
  readonly phases: readonly Phase[];
  /** While `preparing`: what goes on, for people: "pulling debian-12: 41 %". */
  readonly progress?: string;
}

export interface Fingerprint {
  readonly available: boolean;
  /** Why not, or what limits it: "KVM is not usable: KVM opens, but a probe guest hung under it; guests run under TCG". */
  readonly reason?: string;
  readonly accelerator?: Accelerator;
  readonly version?: string;
  /** What this host has the packages for. Absent: nothing of it. */
  readonly boots?: readonly BootOffer[];
}

/** A piece of a guest's console log. Offsets count bytes since the guest's first boot and never change. */
export interface LogChunk {
  /** Where `data` begins: the asked-for offset, or later when the start has been dropped to keep the log bounded. */
  readonly offset: number;
  readonly data: Uint8Array;
  /** Bytes written so far. */
  readonly size: number;
}

/**
 * Holds the processors of a guest still and keeps its memory, and lets it go on. Both resolve when it is so, and are harmless when it is so
 * already. Throw `DriverError` `NoSuchGuest`, `NotPossible` (it does not run, or is held by something else: it is asked again by a repetition),
 * `HypervisorFailed` (it does not answer, and may have done it).
 */
export interface GuestSuspension {
  suspend(instanceId: string): Promise<void>;
  /** A guest whose memory is in a file has it again first. */
  resume(instanceId: string): Promise<void>;
  /**
   * Suspends the guest, writes its memory to a file, and ends its process. When it throws, the guest runs, or is as it was. Also throws `DiskFull`,
   * `Aborted`. Absent: the memory of its guests cannot be saved.
   */
  save?(instanceId: string, signal: AbortSignal): Promise<void>;
}

export interface GuestVolumes {
  /**
   * Resolves when the guest has these volumes and no others: of one that runs they come and go, a stopped one has them from its next
   * start. Throws `DriverError` `NoSuchGuest`, `NotPossible` (a guest that does not let go: it is asked again by a repetition),
   * `HypervisorFailed` (it does not answer, and may have done it).
   */
  set(instanceId: string, volumes: readonly GuestVolume[], signal: AbortSignal): Promise<void>;
  /** The same two for the files of volumes that a running guest has open. Throws `NoSuchGuest`, `NotPossible`, `DiskFull`, `HypervisorFailed`. */
  grow(instanceId: string, volumeId: string, sizeBytes: number): Promise<void>;
  snapshot(instanceId: string, volumeId: string, act: 'make' | 'remove', name: string): Promise<void>;
}

/** Moves of guests that do not run. */
export interface GuestMigration {
  /** The disk itself, of a guest that does not run. Throws `NoSuchGuest`, `NotPossible`. */
  openDisk(instanceId: string): Promise<DiskReader>;
  /** Fetches what `create` will need besides the disk. Throws as `create`. */
  prepare(spec: GuestSpec, signal: AbortSignal): Promise<void>;
  /** Checks a disk that was received whole. Throws `ImageInvalid`, `Aborted`, `HypervisorFailed`. */
  accept(spec: GuestSpec, disk: ReceivedFile, signal: AbortSignal): Promise<void>;
}

/** The input of the source of a live move. */
export interface LiveSend {
  readonly move: { readonly id: string; readonly revision: number };
  readonly bytesPerSecondMax?: number | undefined;
  /** Connects to the waiting machine on the target: for a disk by its name, or for `memory`. */
  dial(name: string): Promise<Duplex>;
  onProgress(seen: { readonly bytes: number; readonly ofBytes: number }): void;
  /** Called when the guest is paused, before it may be complete on the target. Throws when the move is no longer in progress. */
  assertUnderWay(): void;
}

/** Live moves of guests. All functions throw `NoSuchGuest`, `NotPossible`, `HypervisorFailed`, `Aborted`. */
export interface GuestLiveMigration {
  /** A live move requires the same value on both hosts. */
  kind(): Promise<LiveKind>;
  /** On the source: describes the machine of a running guest. */
  describe(instanceId: string): Promise<LiveMachine>;
  /**
   * On the target: creates a paused machine that waits for disks and memory. The guest is `preparing`. Its volumes are empty files of the same
   * sizes. Throws `NotPossible` with all differences when the machines differ.
   */
  expect(spec: GuestSpec, machine: LiveMachine, signal: AbortSignal): Promise<void>;
  /** On the target, while the machine waits: the other end of the source's `dial` of the same name. */
  connect(instanceId: string, name: string): Promise<Duplex>;
  /** On the target: resolves when everything has arrived. From then on the guest is `suspended`, and runs when it is resumed. */
  received(instanceId: string, signal: AbortSignal): Promise<void>;
  /**
   * On the source: resolves when everything was sent, with the milliseconds for which the guest has been paused. From then on the guest is paused
   * and shown as `handedOver`, and only `takeBack` resumes it. When it throws, the guest keeps running, or is shown as `handedOver` if it is
   * unknown what has arrived.
   */
  send(instanceId: string, call: LiveSend, signal: AbortSignal): Promise<number>;
  /** On the source: whether this move has sent everything, so that the guest is paused. */
  sent(instanceId: string, id: string): Promise<boolean>;
  /** On the source, after a failed move: resumes the guest. Does nothing when the guest runs. */
  takeBack(instanceId: string): Promise<void>;
}

/** A copy that has no name any more: it is gone when the file is closed. */
export interface ExportedDisk {
  readonly sizeBytes: number;
  readonly file: FileHandle;
}

export interface Driver {
  readonly name: string;
  /** Looks at the host; takes seconds at most. Never throws: what does not work is `available: false` with its reason. */
  fingerprint(): Promise<Fingerprint>;
  /** Grows when that may have changed, and should be looked at before its time. Absent: it never does. */
  changes?(): number;
  /**
   * Finds the guests of an earlier run of the agent, without disturbing them. Before anything else, again while it throws: it
   * does when it cannot see, and then has touched nothing. A guest of which it cannot tell what it was is shown `damaged`.
   */
  recover(): Promise<void>;
  /** All guests that have anything left on this host, as last seen. */
  guests(): readonly Guest[];
  /** Calls `listener` after a guest changed in any way, until `signal` aborts. */
  watch(listener: (instanceId: string) => void, signal: AbortSignal): void;
  /**
   * Makes disk and seed and starts the guest; resolves when it runs. Repeating it for the same incarnation finishes what an
   * interrupted one began. On failure nothing runs, the guest is `failed`, and `DriverError` is thrown. Aborting `signal` gives up.
   * A damaged guest is in the way, like a newer one: only `remove` touches it.
   */
  create(spec: GuestSpec, signal: AbortSignal): Promise<void>;
  /** Boots a `stopped` guest from its own disk again. */
  start(instanceId: string): Promise<void>;
  /**
   * Asks the guest to power off, letting a suspended one go on for it; after `graceMs` it is ended, and then has the reason `stopForced`.
   * With 0 it is ended at once, as asked. Resolves when it no longer runs. Harmless when it does not.
   */
  stop(instanceId: string, graceMs: number): Promise<void>;
  /** Ends the guest and removes every trace: process, files, ports. Harmless when there is none. */
  remove(instanceId: string): Promise<void>;
  /**
   * Gives a guest that does not run other amounts; its disk only grows. Repeating it is harmless. Absent: its guests cannot be resized. Throws
   * `DriverError` `NoSuchGuest`, `NotPossible` (it runs), `DiskFull`, `HypervisorFailed`.
   */
  resize?(instanceId: string, size: GuestSize): Promise<void>;
  /** At most `limit` bytes from `offset` on. Empty `data` at the end. Throws `DriverError` `NoSuchGuest`. */
  readLog(instanceId: string, offset: number, limit: number): Promise<LogChunk>;
  /** Absent: its guests cannot be suspended. */
  readonly suspension?: GuestSuspension;
  /** What can be done with the volumes of its guests. Absent: they have none. */
  readonly volumes?: GuestVolumes;
  /** Its guests can have folders of the host, as their containers ask for. */
  readonly mounts?: true;
  /** Its guests use volumes with a file system, which containers mount, and no others. */
  readonly filesystems?: true;
  /** The ways into its guests while they run. */
  readonly access?: GuestAccess;
  /**
   * The disk of a guest that does not run, with all that it lies upon, as one qcow2 file; the guest waits until it is made. Absent: this
   * driver's guests have no such disk. Throws `DriverError` `NoSuchGuest`, `Aborted` (also when it runs again), `DiskFull`, `Internal`.
   */
  exportDisk?(instanceId: string, signal: AbortSignal): Promise<ExportedDisk>;
  /** Absent: its guests cannot move live. */
  readonly live?: GuestLiveMigration;
  /** Absent: its guests stay on their host. */
  readonly migration?: GuestMigration;
  /** How the hypervisor says that the machine of a guest stands, for people. Absent, or undefined: it does not say, or there is no machine. Never throws. */
  describe?(instanceId: string): Promise<string | undefined>;
  /** Current usage of its running guests, without those that cannot be measured. Absent: it cannot measure. Never throws. */
  usage?(): Promise<readonly GuestUsage[]>;
  /** Lets go of everything; guests run on. */
  close(): Promise<void>;
}

/** The closed list of what can go wrong while making or handling a guest. */
/** Of a guest that was asked to power off and did not in this time. */
export const stopForced = (waitedMs: number): NonNullable<Guest['reason']> => ({
  code: 'StopForced',
  message: `the guest did not power off within ${Math.round(waitedMs / 100) / 10} s and was ended by force`,
});
