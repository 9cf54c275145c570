// The network of this host that guests are connected to, where that is not QEMU's own user network. It connects and guards; which guest has
// which place it reads from the guests' records, and what is not Berth's it never touches.

import type { GuestNetwork } from './guest-network.ts';

export interface PlacedGuest {
  readonly instanceId: string;
  /** Of the guest's files. */
  readonly directory: string;
  readonly network: GuestNetwork;
}

/** One that is to have a place. */
export interface NewGuest {
  readonly instanceId: string;
  readonly uuid: string;
  readonly directory: string;
  /** Absent: no other guest is to reach it. */
  readonly project?: string;
  readonly name?: string;
}

export interface HostNetwork {
  readonly kind: GuestNetwork['kind'];
  /** Why no guest can be connected, for people; undefined: nothing is known to be in the way. Changes nothing. */
  fault(): Promise<string | undefined>;
  /** A place for a guest that is being made. Throws `NotPossible` when there is none. */
  reserve(guest: NewGuest): GuestNetwork;
  /** Takes over the place of a guest of an earlier run of the agent; changes nothing yet. */
  adopt(guest: PlacedGuest): void;
  /** Once all guests of earlier runs have been adopted: sees to what they need, now and from now on. A second time is harmless. */
  settle(): Promise<void>;
  /** The guest's interface is there when this resolves, with all that guards it. A second time is harmless. Throws `HypervisorFailed`. */
  attach(guest: PlacedGuest): Promise<void>;
  /** The address at which this host is surest to have heard the card with this MAC address; of several `current`. Absent: addresses are given out here. */
  heardOf?(macAddress: string, current?: string): Promise<string | undefined>;
  /** Takes the guest's interface away and gives its place back. Harmless when there is none. */
  release(instanceId: string): Promise<void>;
  /**
   * The control plane has refused this agent for good: takes away what it made of the host, unless a guest that runs needs it. Harmless
   * when there is nothing. Absent: nothing is made.
   */
  leave?(): Promise<void>;
  /** Lets go; guests stay connected. A second time is harmless. */
  close(): Promise<void>;
}
