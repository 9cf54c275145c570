// A guest of the fake world, the faults it can have, and what happens to it by itself after a time. A suspended guest
// keeps the time that was left until each of these events.

import type { GuestPort, GuestState, Phase } from '../../../api/agent-protocol.ts';
import type { Clock } from '../../../base/clock.ts';
import type { DriverErrorCode } from '../../host/driver-error.ts';
import type { GuestVolume } from '../driver.ts';
import type { GuestRunner } from './guest-runner.ts';

export type FakeStep = 'pull' | 'clone' | 'start';

/** A deviation from the usual course for the next guests that match. */
export type FakeFault = (
  | { readonly do: 'fail'; readonly step: FakeStep; readonly code: DriverErrorCode }
  /** The step never ends; only aborting the creation ends it. */
  | { readonly do: 'hang'; readonly step: FakeStep }
  /** Pull, clone, start and boot take `factor` times as long. */
  | { readonly do: 'slow'; readonly factor: number }
  /** The guest dies `afterMs` after its start. */
  | { readonly do: 'crash'; readonly afterMs: number }
  /** The guest powers itself off `afterMs` after its start. */
  | { readonly do: 'power-off'; readonly afterMs: number }
  | { readonly do: 'never-ready' }
  | { readonly do: 'ignore-power-button' }
  /** The guest does not release a volume while it runs. */
  | { readonly do: 'hold-volumes' }
) & {
  /** Only for this host, instance or image; default: any. */
  readonly host?: string;
  readonly instanceId?: string;
  readonly imageName?: string;
  /** How many creates it hits; default 1. */
  readonly times?: number;
};

/** The true state of a guest. What a driver believes may differ. */
export interface FakeGuest {
  readonly host: string;
  readonly instanceId: string;
  readonly incarnation: number;
  readonly imageName: string;
  /** The order of its last resize. */
  resized?: number;
  readonly faults: readonly FakeFault[];
  state: GuestState;
  reason?: { readonly code: string; readonly message: string };
  /** Drivers can no longer read what this guest is. */
  damaged?: true;
  /** A process exists for it. */
  running: boolean;
  created: boolean;
  /** It has a process, and is paused for a live move: it waits for its memory, has received it, or has handed it over. */
  frozen?: 'expected' | 'arrived' | 'handed-over' | undefined;
  /** By which move. */
  handedOver?: { readonly id: string; readonly revision: number } | undefined;
  stopRequested: boolean;
  ready: boolean;
  boots: number;
  ports: readonly GuestPort[];
  /** Its volumes; a running guest has them open. Absent: none. */
  volumes?: readonly GuestVolume[];
  /** Of a guest that was created with a program. */
  runner?: GuestRunner;
  phases: readonly Phase[];
  startedAtMs?: number;
  console: string;
  /** Events that will happen to it by themselves. */
  readonly pending: Set<PendingEvent>;
}

export interface PendingEvent {
  /** On the clock's monotonic time; while the guest is suspended, the time that was left. */
  dueMs: number;
  cancel(): void;
  readonly act: () => void;
}

export const fakeAddress = '10.0.2.15';

/** The factor by which every step of this guest takes longer than usual. */
export function slowness(guest: FakeGuest): number {
  return guest.faults.reduce((factor, fault) => (fault.do === 'slow' ? factor * fault.factor : factor), 1);
}

/** Calls `act` after `delayMs` of the guest's running time. */
export function after(clock: Clock, guest: FakeGuest, delayMs: number, act: () => void): void {
  const event: PendingEvent = { dueMs: clock.monotonicMs() + delayMs, cancel: () => {}, act };
  guest.pending.add(event);
  if (guest.state === 'suspended')
    event.dueMs = delayMs; // it is armed when the guest is resumed
  else arm(clock, guest, event, delayMs);
}

export function holdEvents(clock: Clock, guest: FakeGuest): void {
  for (const event of guest.pending) {
    event.cancel();
    event.dueMs -= clock.monotonicMs();
  }
}

export function releaseEvents(clock: Clock, guest: FakeGuest): void {
  for (const event of guest.pending) {
    const nowMs = clock.monotonicMs();
    event.dueMs += nowMs;
    arm(clock, guest, event, Math.max(0, event.dueMs - nowMs));
  }
}

export function cancelEvents(guest: FakeGuest): void {
  for (const event of guest.pending) event.cancel();
  guest.pending.clear();
}

function arm(clock: Clock, guest: FakeGuest, event: PendingEvent, delayMs: number): void {
  const timer = clock.setTimer(delayMs, () => {
    guest.pending.delete(event);
    event.act();
  });
  event.cancel = () => timer.cancel();
}
