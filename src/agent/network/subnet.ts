// IPv4 subnets as numbers: pure.

import { isIPv4 } from 'node:net';

export interface Subnet {
  readonly first: number;
  readonly prefix: number;
  /** Addresses, with the first and the last, which no guest can have. */
  readonly size: number;
}

/** `10.77.0.0/16`. Undefined: it is none, or has bits set beyond its prefix. */
export function parseSubnet(text: string): Subnet | undefined {
  const [address = '', prefixText = '', ...rest] = text.split('/');
  if (!isIPv4(address) || !/^[0-9]{1,2}$/.test(prefixText) || rest.length > 0) return undefined;
  const prefix = Number(prefixText);
  if (prefix > 32) return undefined;
  const size = 2 ** (32 - prefix);
  const first = toNumber(address);
  return first % size === 0 ? { first, prefix, size } : undefined;
}

/** From /16 to /29: what one host can have guests for. */
export function parseNatSubnet(text: string): Subnet | undefined {
  const subnet = parseSubnet(text);
  return subnet === undefined || subnet.prefix < 16 || subnet.prefix > 29 ? undefined : subnet;
}

export const subnetText = (subnet: Subnet): string => `${toAddress(subnet.first)}/${subnet.prefix}`;
/** The host's own, and the guests' way out. */
export const gatewayOf = (subnet: Subnet): string => toAddress(subnet.first + 1);

export function contains(subnet: Subnet, address: string): boolean {
  const offset = toNumber(address) - subnet.first;
  return offset >= 0 && offset < subnet.size;
}

export function netmaskOf({ prefix }: Subnet): string {
  return toAddress(2 ** 32 - 2 ** (32 - prefix));
}

export function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

export function toAddress(value: number): string {
  return [24, 16, 8, 0].map((bits) => Math.floor(value / 2 ** bits) % 256).join('.');
}
