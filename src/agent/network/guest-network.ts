// What a guest has of a network of this host: its interface's names and address. Kept in the guest's record, so that it is the same after a
// restart of guest, agent or host.

import { createHash } from 'node:crypto';
import { type Static, Type } from 'typebox';

export const GuestNetwork = Type.Union([
  Type.Object({
    kind: Type.Literal('nat'),
    /** The host's end of the guest's interface. */
    tap: Type.String(),
    macAddress: Type.String(),
    /** IPv4; the guest can have no other. */
    address: Type.String(),
    /** Guests of one project reach each other. Absent: it reaches none, as those of older agents. */
    project: Type.Optional(Type.String()),
    /** Of the instance, by which the others of its project find it. */
    name: Type.Optional(Type.String()),
  }),
  Type.Object({
    kind: Type.Literal('bridge'),
    /** The operator's, not ours. */
    bridge: Type.String(),
    tap: Type.String(),
    macAddress: Type.String(),
  }),
]);
export type GuestNetwork = Readonly<Static<typeof GuestNetwork>>;

/** By these the rules of the NAT network know what is theirs; nothing else may be named so. */
export const natTapPrefix = 'bt';
const tapPrefix = { nat: natTapPrefix, bridge: 'bb' };

/** 14 characters of the 15 that the kernel allows; with 48 bits of the id's hash no two guests of a host share one. */
export function tapName(kind: GuestNetwork['kind'], instanceId: string): string {
  return `${tapPrefix[kind]}${createHash('sha256').update(instanceId).digest('hex').slice(0, 12)}`;
}

/** Of the range for local use, with 46 bits of the uuid's hash: guests of all hosts may meet on one network. */
export function networkMacAddress(uuid: string): string {
  const bytes = createHash('sha256').update(`mac ${uuid}`).digest().subarray(0, 6);
  bytes[0] = ((bytes[0] ?? 0) & 0xfc) | 0x02;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}
