// The ground truth under the fake driver: what really runs on which host. It outlives drivers, as real guests outlive
// agents, and records when one instance runs twice. Its only source of time is the given clock; it draws nothing at random.

import type { Clock } from '../../../base/clock.ts';
import type { VolumeDisk } from '../../volumes/files/memory-volume-files.ts';
import type { GuestVolume } from '../driver.ts';
import type { FakeFault, FakeGuest } from './fake-guest.ts';
import { type DoubleStart, type FakeLatencies, GuestProcesses } from './guest-processes.ts';
import { GuestRegistry } from './guest-registry.ts';
import { PlantedFaults } from './planted-faults.ts';
import { type VolumeFault, VolumeUse } from './volume-use.ts';

export type { FakeFault, FakeGuest } from './fake-guest.ts';

export interface FakeWorld {
  readonly clock: Clock;
  readonly latencies: FakeLatencies;
  /** `onTaken` is called for each guest that meets the fault. */
  inject(fault: FakeFault, onTaken?: () => void): void;
  /** The guests of one host, or of all hosts, in the order of their creation. */
  guests(host?: string): readonly FakeGuest[];
  guest(host: string, instanceId: string): FakeGuest | undefined;
  /** How many guests of this instance run now, on all hosts together. */
  runningCopies(instanceId: string): number;
  /** Every time an instance was started while it ran already. An exclusive instance must never be listed. */
  readonly doubleStarts: readonly DoubleStart[];
  /** The guest's process dies, as by SIGKILL. */
  crash(host: string, instanceId: string): void;
  /** The host's record of the guest becomes unreadable; its process, if any, continues to run. */
  damage(host: string, instanceId: string): void;
  /** The guest powers itself off. */
  powerOff(host: string, instanceId: string): void;
  /** The host loses power: all its guests die; what is on its disks stays. */
  crashHost(host: string): void;
  /** Another program takes a port of a host; the returned function releases it. */
  occupyPort(host: string, port: number): () => void;
  portTaken(host: string, port: number): boolean;
  /** The volumes on a host's disk, which outlive guests and agents. */
  volumeDisk(host: string): VolumeDisk;
  /** Ids of the guests of a host that run and have this volume open. */
  volumeUsers(host: string, volumeId: string): readonly string[];
  /** Must stay empty. */
  readonly volumeFaults: readonly VolumeFault[];
  /** Images that each host has pulled. */
  readonly pulled: ReadonlyMap<string, ReadonlySet<string>>;

  // For the fake driver only.
  addGuest(guest: Omit<FakeGuest, 'faults' | 'pending'>): FakeGuest;
  deleteGuest(guest: FakeGuest): void;
  startGuest(guest: FakeGuest): void;
  /** `runDisk`: its bytes. */
  giveProgram(guest: FakeGuest, runDisk: Uint8Array): void;
  /** The guest has these volumes and no others from now on. */
  setVolumes(guest: FakeGuest, volumes: readonly GuestVolume[]): void;
  pressPowerButton(guest: FakeGuest): void;
  endGuest(guest: FakeGuest, cause: 'guest-shutdown' | 'killed'): void;
  /** Pending events of the guest wait while it is suspended. Does nothing when it is in that state already, or does not run. */
  setSuspended(guest: FakeGuest, suspended: boolean): void;
  /** A guest that waits for its memory. */
  expectGuest(guest: FakeGuest): void;
  /** The guest is paused for a live move. */
  freeze(guest: FakeGuest, move: NonNullable<FakeGuest['handedOver']>): void;
  /** The memory of the source is on the target, where the guest is paused. */
  arrive(target: FakeGuest, source: FakeGuest): void;
  /** It runs on. */
  thaw(guest: FakeGuest): void;
  notePulled(host: string, imageName: string): void;
  changed(guest: FakeGuest): void;
  onChange(host: string, listener: (instanceId: string) => void): () => void;
}

const usualLatencies: FakeLatencies = {
  pullMs: 2000,
  cloneMs: 50,
  startMs: 200,
  bootMs: 3000,
  shutdownMs: 500,
  suspendMs: 20,
};

/** An object of plain functions, so that a caller can spread it and replace some of them. */
export function createFakeWorld(options: {
  readonly clock: Clock;
  readonly latencies?: Partial<FakeLatencies>;
  /** Opens the disk that holds a host's volumes. Default: empty disks. */
  readonly volumeDisk?: (host: string) => VolumeDisk;
}): FakeWorld {
  const { clock } = options;
  const latencies = { ...usualLatencies, ...options.latencies };
  const guests = new GuestRegistry();
  const volumes = new VolumeUse(guests, options.volumeDisk);
  const processes = new GuestProcesses({ clock, latencies, guests, volumes });
  const faults = new PlantedFaults();
  const pulled = new Map<string, Set<string>>();
  return {
    clock,
    latencies,
    pulled,
    doubleStarts: processes.doubleStarts,
    volumeFaults: volumes.faults,
    ...eventsFromOutside(guests, processes),
    inject: (fault, onTaken = () => {}) => faults.add(fault, onTaken),
    guests: (host) => guests.list(host),
    guest: (host, instanceId) => guests.get(host, instanceId),
    runningCopies: (instanceId) => processes.copies(instanceId),
    occupyPort: (host, port) => guests.occupyPort(host, port),
    portTaken: (host, port) => guests.portTaken(host, port),
    volumeDisk: (host) => volumes.disk(host),
    volumeUsers: (host, volumeId) => volumes.users(host, volumeId),
    addGuest(created) {
      const guest: FakeGuest = { ...created, faults: faults.take(created), pending: new Set() };
      guests.add(guest);
      return guest;
    },
    deleteGuest(guest) {
      processes.end(guest, 'killed');
      guests.delete(guest);
    },
    startGuest: (guest) => processes.start(guest),
    giveProgram: (guest, runDisk) => processes.giveProgram(guest, runDisk),
    setVolumes: (guest, wanted) => volumes.set(guest, wanted),
    pressPowerButton: (guest) => processes.pressPowerButton(guest),
    endGuest: (guest, cause) => processes.end(guest, cause),
    expectGuest: (guest) => processes.expect(guest),
    freeze: (guest, move) => processes.freeze(guest, move),
    arrive: (target, source) => processes.arrive(target, source),
    thaw: (guest) => processes.thaw(guest),
    setSuspended: (guest, suspended) => processes.setSuspended(guest, suspended),
    notePulled: (host, imageName) => void pulled.set(host, (pulled.get(host) ?? new Set()).add(imageName)),
    changed: (guest) => guests.changed(guest),
    onChange: (host, listener) => guests.onChange(host, listener),
  };
}

type EventsFromOutside = Pick<FakeWorld, 'crash' | 'damage' | 'powerOff' | 'crashHost'>;

function eventsFromOutside(guests: GuestRegistry, processes: GuestProcesses): EventsFromOutside {
  return {
    crash(host, instanceId) {
      const guest = guests.get(host, instanceId);
      if (guest !== undefined) processes.end(guest, 'killed');
    },
    damage(host, instanceId) {
      const guest = guests.get(host, instanceId);
      if (guest === undefined) return;
      guest.damaged = true;
      guests.changed(guest);
    },
    powerOff(host, instanceId) {
      const guest = guests.get(host, instanceId);
      if (guest !== undefined) processes.end(guest, 'guest-shutdown');
    },
    crashHost(host) {
      for (const guest of guests.list(host)) processes.end(guest, 'killed');
    },
  };
}
