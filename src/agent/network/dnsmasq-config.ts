// The configuration of dnsmasq for the NAT network: pure. It serves leases that are decided here, and writes none down; it never answers anyone
// but guests.

import type { NatPlace } from './address-book.ts';
import { natBridge } from './nat-rules.ts';
import { gatewayOf, netmaskOf, type Subnet, toAddress } from './subnet.ts';

export const dnsmasqFiles = {
  config: 'dnsmasq.conf',
  hosts: 'dhcp-hosts',
  pid: 'dnsmasq.pid',
  /** Of a project's guests. */
  names: 'hosts',
} as const;

/** Guests ask again after half of it. */
const leaseTime = '12h';

/** `directory` is where its files are. Read once, at its start. */
export function dnsmasqConfig({
  subnet,
  directory,
  linkIndex,
}: {
  readonly subnet: Subnet;
  readonly directory: string;
  /** Of the bridge: sockets on one that was taken away hear nothing of the next. */
  readonly linkIndex: number;
}): string {
  return `# Written by Berth, for link ${linkIndex}; it is written anew when the agent starts.
interface=${natBridge}
except-interface=lo
bind-interfaces
pid-file=${directory}/${dnsmasqFiles.pid}
# Only guests that are listed get an address, and always the same one.
dhcp-range=${toAddress(subnet.first)},static,${netmaskOf(subnet)},${leaseTime}
dhcp-hostsfile=${directory}/${dnsmasqFiles.hosts}
dhcp-option=option:router,${gatewayOf(subnet)}
dhcp-option=option:dns-server,${gatewayOf(subnet)}
dhcp-authoritative
dhcp-lease-max=${subnet.size}
leasefile-ro
no-ping
quiet-dhcp
# Names are asked for where this host asks; what it knows by itself is not told to guests.
no-hosts
domain-needed
bogus-priv
`;
}

/** Of the name server of one project. `directory` is where its files are; it gives no leases. */
export function nameServerConfig({
  directory,
  port,
  linkIndex,
}: {
  readonly directory: string;
  readonly port: number;
  /** Of the bridge. */
  readonly linkIndex: number;
}): string {
  return `# Written by Berth, for link ${linkIndex}; it is written anew when the agent starts.
interface=${natBridge}
except-interface=lo
bind-interfaces
port=${port}
pid-file=${directory}/${dnsmasqFiles.pid}
no-hosts
addn-hosts=${directory}/${dnsmasqFiles.names}
domain-needed
bogus-priv
`;
}

export type Lease = Pick<NatPlace, 'macAddress' | 'address'>;

/**
 * Read again when it is told to. `remembered`: what it has given out since its start, which it gives to no other guest for as long as the
 * lease is; they stand there as comments, for the next agent to know.
 */
export function dhcpHosts(guests: readonly Lease[], remembered: readonly Lease[] = []): string {
  const line = ({ macAddress, address }: Lease): string => `${macAddress},${address}\n`;
  const lines = new Set(guests.map(line));
  const gone = remembered.map(line).filter((each) => !lines.has(each));
  return [...lines, ...gone.map((each) => `#${each}`)].join('');
}

/** What `dhcpHosts` wrote: those it lists and those it remembers. */
export function leasesIn(hosts: string): Lease[] {
  return [...hosts.matchAll(/^#?([0-9a-f:]{17}),([0-9.]+)$/gm)].flatMap(([, macAddress, address]) =>
    macAddress !== undefined && address !== undefined ? { macAddress, address } : [],
  );
}
