// What interfaces have which addresses, as a guest agent, libvirt or the host's table of neighbours says; and which of them is a guest's: pure.
// A guest may have said any of it.

import { isIP } from 'node:net';
import { isRecord } from '../../../../base/is-record.ts';

export interface InterfaceAddresses {
  /** As the guest or the host calls it. */
  readonly name: string;
  readonly macAddress?: string;
  readonly addresses: readonly { readonly version: 4 | 6; readonly address: string; readonly prefix: number }[];
}

/** Of the interface with this MAC address. IPv4 first: that is what networks have unless someone made them otherwise. */
export function addressOf(interfaces: readonly InterfaceAddresses[], card: string): string | undefined {
  const found = interfaces
    .filter(({ macAddress }) => macAddress?.toLowerCase() === card)
    .flatMap(({ addresses }) => addresses)
    .filter(({ address }) => isIP(address) !== 0 && !/^(fe80:|127\.|169\.254\.)/i.test(address));
  return (found.find(({ version }) => version === 4) ?? found[0])?.address;
}

/** From the answer to `guest-network-get-interfaces`; whatever of it is not of its form is left out. */
export function interfacesToldBy(answer: unknown): InterfaceAddresses[] {
  return objectsIn(answer).map((told) => ({
    name: textOf(told['name']),
    macAddress: textOf(told['hardware-address']),
    addresses: objectsIn(told['ip-addresses']).map((each) => ({
      version: each['ip-address-type'] === 'ipv6' ? 6 : 4,
      address: textOf(each['ip-address']),
      prefix: typeof each['prefix'] === 'number' ? each['prefix'] : 0,
    })),
  }));
}

/** A guest has a few interfaces, with a few addresses each. */
const entriesMax = 256;

const objectsIn = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.slice(0, entriesMax).filter(isRecord) : [];

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
