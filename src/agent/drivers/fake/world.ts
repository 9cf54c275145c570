// The ground truth under the fake driver: what really runs on which host. It outlives drivers, as real guests outlive
// agents, and notes when one instance runs twice. No timers and no randomness but the clock it is given.

import type { GuestPort, GuestState, Phase } from '../../../api/agent-protocol.ts';
import type { Clock } from '../../../base/clock.ts';
import type { GuestVolume } from '../driver.ts';
import type { DriverErrorCode } from '../../host/driver-error.ts';
import type { VolumeDisk } from '../../volumes/memory-volume-files.ts';

export type FakeStep = 'pull' | 'clone' | 'start';

/** Something that goes wrong, or otherwise, for the next guests that match. */
export type FakeFault = (
  | { readonly do: 'fail'; readonly step: FakeStep; readonly code: DriverErrorCode }
  /** The step never ends; only giving up helps. */
  | { readonly do: 'hang'; readonly step: FakeStep }
  /** Pull, clone, start and boot take so many times as long. */
  | { readonly do: 'slow'; readonly factor: number }
  /** The guest dies so long after its start. */
  | { readonly do: 'crash'; readonly afterMs: number }
  /** The guest powers itself off so long after its start. */
  | { readonly do: 'power-off'; readonly afterMs: number }
  | { readonly do: 'never-ready' }
  | { readonly do: 'ignore-power-button' }
  /** It does not let go of a volume while it runs. */
  | { readonly do: 'hold-volumes' }
) & {
  /** Only for this host, instance or image; default: any. */
  readonly host?: string;
  readonly instanceId?: string;
  readonly imageName?: string;
  /** How many creates it hits; default 1. */
  readonly times?: number;
};

export interface FakeLatencies {
  readonly pullMs: number;
  readonly cloneMs: number;
  readonly startMs: number;
  readonly bootMs: number;
  /** From the power button to the end. */
  readonly shutdownMs: number;
  /** To suspend it, or to let it go on. */
  readonly suspendMs: number;
}

/** A guest as it is, not as some driver believes it to be. */
export interface FakeGuest {
  readonly host: string;
  readonly instanceId: string;
  readonly incarnation: number;
  readonly imageName: string;
  readonly faults: readonly FakeFault[];
  state: GuestState;
  reason?: { readonly code: string; readonly message: string };
  /** Drivers cannot tell any more what it is. */
  damaged?: true;
  /** A process exists for it. */
  running: boolean;
  created: boolean;
  stopRequested: boolean;
  ready: boolean;
  boots: number;
  ports: readonly GuestPort[];
  /** That it has, and while it runs has open. Absent: none. */
  volumes?: readonly GuestVolume[];
  phases: readonly Phase[];
  startedAtMs?: number;
  console: string;
  /** All that is to happen to it by itself. */
  readonly pending: Set<PendingAct>;
}

interface PendingAct {
  /** Of the clock's monotonic time; while the guest is suspended, what was left of it. */
  dueMs: number;
  cancel(): void;
  readonly act: () => void;
}

export interface DoubleStart {
  readonly instanceId: string;
  readonly hosts: readonly string[];
  readonly atMs: number;
}

/** A guest opened a volume that another had open, or that is not on its host. */
export interface VolumeFault {
  readonly volumeId: string;
  readonly host: string;
  readonly instanceId: string;
  /** Empty: the volume is not there. */
  readonly others: readonly string[];
}

export interface FakeWorld {
  readonly clock: Clock;
  readonly latencies: FakeLatencies;
  /** `onTaken`: when a guest has met it. */
  inject(fault: FakeFault, onTaken?: () => void): void;
  /** Guests of one host, or of all, in the order of their birth. */
  guests(host?: string): readonly FakeGuest[];
  guest(host: string, instanceId: string): FakeGuest | undefined;
  /** How many guests of this instance run now, on all hosts together. */
  runningCopies(instanceId: string): number;
  /** Every time an instance was started while it ran already. An exclusive instance must never be in here. */
  readonly doubleStarts: readonly DoubleStart[];
  /** The guest's process dies, as by SIGKILL. */
  crash(host: string, instanceId: string): void;
  /** What is known of the guest on its host becomes unreadable; its process, if any, runs on. */
  damage(host: string, instanceId: string): void;
  /** The guest powers itself off. */
  powerOff(host: string, instanceId: string): void;
  /** The host loses power: all its guests die; what is on its disks stays. */
  crashHost(host: string): void;
  /** Another program takes a port of a host; the function gives it back. */
  occupyPort(host: string, port: number): () => void;
  portTaken(host: string, port: number): boolean;
  /** The volumes on a host's disk, which outlive guests and agents. */
  volumeDisk(host: string): VolumeDisk;
  /** Ids of the guests of a host that run and have this volume open. */
  volumeUsers(host: string, volumeId: string): readonly string[];
  /** Must stay empty. */
  readonly volumeFaults: readonly VolumeFault[];
  /** Images a host has pulled already. */
  readonly pulled: ReadonlyMap<string, ReadonlySet<string>>;

  // For the fake driver only.
  addGuest(guest: Omit<FakeGuest, 'faults' | 'pending'>): FakeGuest;
  deleteGuest(guest: FakeGuest): void;
  startGuest(guest: FakeGuest): void;
  /** It has these and no others from now on. */
  setVolumes(guest: FakeGuest, volumes: readonly GuestVolume[]): void;
  pressPowerButton(guest: FakeGuest): void;
  endGuest(guest: FakeGuest, cause: 'guest-shutdown' | 'killed'): void;
  /** All that is to happen to it by itself waits meanwhile. Harmless when it is so, or does not run. */
  setSuspended(guest: FakeGuest, suspended: boolean): void;
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

export function createFakeWorld(options: {
  readonly clock: Clock;
  readonly latencies?: Partial<FakeLatencies>;
  /** Of the volumes of its hosts. Default: empty disks. */
  readonly volumeDisk?: (host: string) => VolumeDisk;
}): FakeWorld {
  const { clock } = options;
  const latencies = { ...usualLatencies, ...options.latencies };
  const hosts = new Map<string, Map<string, FakeGuest>>();
  const copies = new Map<string, Set<FakeGuest>>();
  const pulled = new Map<string, Set<string>>();
  const occupied = new Set<string>(); // "<host>/<port>"
  const doubleStarts: DoubleStart[] = [];
  const volumeFaults: VolumeFault[] = [];
  const disks = new Map<string, VolumeDisk>();
  const listeners = new Map<string, Set<(instanceId: string) => void>>();
  let pending: { fault: FakeFault; left: number; onTaken: () => void }[] = [];

  const guests = (host?: string): FakeGuest[] =>
    host === undefined
      ? [...hosts.values()].flatMap((each) => [...each.values()])
      : [...(hosts.get(host)?.values() ?? [])];
  const guestOf = (host: string, instanceId: string): FakeGuest | undefined => hosts.get(host)?.get(instanceId);

  const changed = (guest: FakeGuest): void => {
    for (const listener of listeners.get(guest.host) ?? []) listener(guest.instanceId);
  };

  const after = (guest: FakeGuest, delayMs: number, act: () => void): void => {
    const pending: PendingAct = { dueMs: clock.monotonicMs() + delayMs, cancel: () => {}, act };
    guest.pending.add(pending);
    arm(guest, pending, delayMs);
  };

  const arm = (guest: FakeGuest, pending: PendingAct, delayMs: number): void => {
    const timer = clock.setTimer(delayMs, () => {
      guest.pending.delete(pending);
      pending.act();
    });
    pending.cancel = () => timer.cancel();
  };

  const setSuspended = (guest: FakeGuest, suspended: boolean): void => {
    if (guest.state !== (suspended ? 'running' : 'suspended')) return;
    guest.state = suspended ? 'suspended' : 'running';
    for (const each of guest.pending) {
      if (suspended) each.cancel();
      const nowMs = clock.monotonicMs();
      each.dueMs += suspended ? -nowMs : nowMs;
      if (!suspended) arm(guest, each, Math.max(0, each.dueMs - nowMs));
    }
    changed(guest);
  };

  const takeFaults = (guest: Pick<FakeGuest, 'host' | 'instanceId' | 'imageName'>): FakeFault[] => {
    const hits = pending.filter(
      ({ fault }) =>
        (fault.host ?? guest.host) === guest.host &&
        (fault.instanceId ?? guest.instanceId) === guest.instanceId &&
        (fault.imageName ?? guest.imageName) === guest.imageName,
    );
    for (const hit of hits) {
      hit.left -= 1;
      hit.onTaken();
    }
    pending = pending.filter((each) => each.left > 0);
    return hits.map((hit) => hit.fault);
  };

  const boot = (guest: FakeGuest): void => {
    const startedAtMs = clock.nowMs();
    const bootMs = latencies.bootMs * slowness(guest);
    guest.console += `boot ${guest.boots} of ${guest.instanceId}\n`;
    guest.boots += 1;
    if (!guest.faults.some((fault) => fault.do === 'never-ready')) {
      after(guest, bootMs, () => {
        guest.ready = true;
        guest.console += `berth: address eth0 ${fakeAddress}\nberth: ready\n`;
        guest.phases = [...guest.phases, { name: 'boot', startedAtMs, durationMs: clock.nowMs() - startedAtMs }];
        changed(guest);
      });
    }
    for (const fault of guest.faults) {
      if (fault.do === 'crash') after(guest, fault.afterMs, () => endGuest(guest, 'killed'));
      if (fault.do === 'power-off') after(guest, fault.afterMs, () => endGuest(guest, 'guest-shutdown'));
    }
  };

  const volumeDisk = (host: string): VolumeDisk => {
    const disk = disks.get(host) ?? options.volumeDisk?.(host) ?? new Map();
    disks.set(host, disk);
    return disk;
  };

  const volumeUsers = (host: string, volumeId: string): string[] =>
    guests(host)
      .filter((guest) => guest.running && guest.volumes?.some((each) => each.volumeId === volumeId))
      .map(({ instanceId }) => instanceId);

  const noteOpened = ({ host, instanceId }: FakeGuest, volumes: readonly GuestVolume[]): void => {
    for (const { volumeId } of volumes) {
      const others = volumeUsers(host, volumeId).filter((user) => user !== instanceId);
      if (others.length > 0 || !volumeDisk(host).has(volumeId))
        volumeFaults.push({ volumeId, host, instanceId, others });
    }
  };

  const startGuest = (guest: FakeGuest): void => {
    const others = copies.get(guest.instanceId) ?? new Set<FakeGuest>();
    others.add(guest);
    copies.set(guest.instanceId, others);
    if (others.size > 1 || guest.running) {
      doubleStarts.push({
        instanceId: guest.instanceId,
        hosts: [...others].map((each) => each.host),
        atMs: clock.nowMs(),
      });
    }
    noteOpened(guest, guest.volumes ?? []);
    guest.running = true;
    guest.created = true;
    guest.state = 'running';
    delete guest.reason;
    guest.stopRequested = false;
    guest.ready = false;
    guest.startedAtMs = clock.nowMs();
    boot(guest);
    changed(guest);
  };

  const endGuest = (guest: FakeGuest, cause: 'guest-shutdown' | 'killed'): void => {
    if (!guest.running) return;
    for (const each of guest.pending) each.cancel();
    guest.pending.clear();
    guest.running = false;
    const running = copies.get(guest.instanceId);
    running?.delete(guest);
    if (running?.size === 0) copies.delete(guest.instanceId);
    if (guest.stopRequested) guest.state = 'stopped';
    else if (cause === 'guest-shutdown') {
      guest.state = 'exited';
      guest.reason = { code: 'GuestShutdown', message: 'the guest powered itself off' };
    } else {
      guest.state = 'failed';
      guest.reason = { code: 'HypervisorExited', message: 'the fake guest was killed' };
    }
    changed(guest);
  };

  return {
    clock,
    latencies,
    doubleStarts,
    volumeFaults,
    volumeDisk,
    volumeUsers,
    pulled,
    guests,
    guest: guestOf,
    changed,
    startGuest,
    setSuspended,
    endGuest,
    inject: (fault, onTaken = () => {}) => void pending.push({ fault, left: fault.times ?? 1, onTaken }),
    runningCopies: (instanceId) => copies.get(instanceId)?.size ?? 0,
    crash(host, instanceId) {
      const guest = guestOf(host, instanceId);
      if (guest !== undefined) endGuest(guest, 'killed');
    },
    damage(host, instanceId) {
      const guest = guestOf(host, instanceId);
      if (guest === undefined) return;
      guest.damaged = true;
      changed(guest);
    },
    powerOff(host, instanceId) {
      const guest = guestOf(host, instanceId);
      if (guest !== undefined) endGuest(guest, 'guest-shutdown');
    },
    crashHost(host) {
      for (const guest of guests(host)) endGuest(guest, 'killed');
    },
    occupyPort(host, port) {
      occupied.add(`${host}/${port}`);
      return () => occupied.delete(`${host}/${port}`);
    },
    portTaken: (host, port) =>
      occupied.has(`${host}/${port}`) ||
      guests(host).some((guest) => guest.ports.some((each) => each.hostPort === port)),
    addGuest(born) {
      const guest: FakeGuest = { ...born, faults: takeFaults(born), pending: new Set() };
      const onHost = hosts.get(guest.host) ?? new Map<string, FakeGuest>();
      onHost.set(guest.instanceId, guest);
      hosts.set(guest.host, onHost);
      changed(guest);
      return guest;
    },
    deleteGuest(guest) {
      endGuest(guest, 'killed');
      hosts.get(guest.host)?.delete(guest.instanceId);
      changed(guest);
    },
    setVolumes(guest, volumes) {
      const before = guest.volumes ?? [];
      if (guest.running)
        noteOpened(
          guest,
          volumes.filter(({ volumeId }) => !before.some((each) => each.volumeId === volumeId)),
        );
      if (volumes.length === 0) delete guest.volumes;
      else guest.volumes = volumes;
      changed(guest);
    },
    pressPowerButton(guest) {
      if (guest.state !== 'running' || guest.faults.some((fault) => fault.do === 'ignore-power-button')) return;
      after(guest, latencies.shutdownMs, () => endGuest(guest, 'guest-shutdown'));
    },
    notePulled(host, imageName) {
      const images = pulled.get(host) ?? new Set<string>();
      images.add(imageName);
      pulled.set(host, images);
    },
    onChange(host, listener) {
      const set = listeners.get(host) ?? new Set();
      set.add(listener);
      listeners.set(host, set);
      return () => set.delete(listener);
    },
  };
}

export const fakeAddress = '10.0.2.15';

/** How many times as long as usual everything takes for this guest. */
export function slowness(guest: FakeGuest): number {
  return guest.faults.reduce((factor, fault) => (fault.do === 'slow' ? factor * fault.factor : factor), 1);
}
