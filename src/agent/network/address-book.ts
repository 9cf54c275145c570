// Which guest has which place in the NAT network. A place belongs to one guest from `reserve` to `release`; guests keep theirs in their
// records, and an agent that starts takes them over from there.

import { createHash } from 'node:crypto';
import { DriverError } from '../host/driver-error.ts';
import { type GuestNetwork, networkMacAddress, tapName } from './guest-network.ts';
import type { NewGuest } from './host-network.ts';
import { contains, subnetText, type Subnet, toAddress } from './subnet.ts';

export type NatPlace = Extract<GuestNetwork, { kind: 'nat' }>;
export interface NatGuest extends NatPlace {
  readonly instanceId: string;
  readonly directory: string;
}

export interface AddressBook {
  /** Throws `NotPossible` when all places are taken. */
  reserve(guest: NewGuest): NatPlace;
  adopt(guest: NatGuest): void;
  release(instanceId: string): void;
  guestAt(address: string): NatGuest | undefined;
  guests(): readonly NatGuest[];
}

/** The gateway's, at the beginning; the first address of a subnet and its last are not given out. */
const firstPlace = 2;

export function createAddressBook(subnet: Subnet): AddressBook {
  const byAddress = new Map<string, NatGuest>();
  const places = subnet.size - firstPlace - 1;

  const release = (instanceId: string): void => {
    for (const [address, guest] of byAddress) if (guest.instanceId === instanceId) byAddress.delete(address);
  };
  return {
    release,
    guestAt: (address) => byAddress.get(address),
    guests: () => [...byAddress.values()].sort((a, b) => (a.tap < b.tap ? -1 : 1)),
    adopt(guest) {
      release(guest.instanceId);
      byAddress.set(guest.address, guest);
    },
    reserve({ instanceId, uuid, directory, project, name }) {
      release(instanceId);
      // Where it begins to look depends on the guest alone, so that it tends to get the same address again.
      const start = createHash('sha256').update(instanceId).digest().readUInt32BE() % places;
      for (let i = 0; i < places; i++) {
        const address = toAddress(subnet.first + firstPlace + ((start + i) % places));
        if (byAddress.has(address)) continue;
        const place: NatPlace = {
          kind: 'nat',
          tap: tapName('nat', instanceId),
          macAddress: networkMacAddress(uuid),
          address,
          ...(project === undefined ? {} : { project }),
          ...(name === undefined ? {} : { name }),
        };
        byAddress.set(address, { ...place, instanceId, directory });
        return place;
      }
      throw new DriverError(
        'NotPossible',
        `cannot give ${instanceId} an address: all ${places} of ${subnetText(subnet)} are taken; remove guests, or give the agent a larger natSubnet while it has none`,
      );
    },
  };
}

/** A guest's address is for as long as it lives: an address outside the subnet could not be reached. */
export function checkPlace(subnet: Subnet, { instanceId, address }: NatGuest): void {
  if (contains(subnet, address)) return;
  throw new DriverError(
    'HypervisorFailed',
    `cannot connect ${instanceId}: its address ${address} is not in natSubnet ${subnetText(subnet)}; set the natSubnet that it was made with, or delete the instance`,
  );
}
