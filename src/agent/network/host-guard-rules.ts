// What keeps guests on QEMU's own network from their host: what a guest connects to, QEMU connects to as the guest's user, so the kernel knows who
// asks. Pure: it makes text for nft, of one table, and names no other.
//
//   a user of guests ─► lo ─┬─ begins nothing ─────────► answers of published ports, also of connections that were there before the rules
//   (all that goes to one   ├─ a resolver, port 53 ────► names (10.0.2.3 in the guest)
//   of the host's own       ├─ hostPortsReached ───────► what the operator lets them
//   addresses goes by lo)   └─ else: refused, counted

import { isIP, isIPv4 } from 'node:net';
import type { GuestUsers } from '../drivers/vm/guest-user.ts';

export interface HostGuardState {
  readonly table: string;
  readonly users: GuestUsers;
  /** More of them, one by one. */
  readonly besides: readonly number[];
  /** Addresses of the host's resolvers; whether they are on the host itself makes no difference here. */
  readonly resolvers: readonly string[];
  /** Of TCP, at all addresses of the host. */
  readonly ports: readonly number[];
}

/** One agent's alone, wherever its data directory is. */
export function hostGuardTable(agentId: string): string {
  return `berth_${agentId}`;
}

export function hostGuardRules({ table, users, besides, resolvers, ports }: HostGuardState): string {
  const range = users.count === 1 ? String(users.first) : `${users.first}-${users.first + users.count - 1}`;
  const all = besides.length === 0 ? range : `{ ${[range, ...besides].join(', ')} }`;
  const dns = (family: 'ip' | 'ip6', addresses: readonly string[]): string =>
    addresses.length === 0
      ? ''
      : `    ${family} daddr { ${addresses.join(', ')} } meta l4proto { tcp, udp } th dport 53 accept\n`;
  return `add table inet ${table}
flush table inet ${table}
table inet ${table} {
  counter to_host { }
  chain output {
    type filter hook output priority 0; policy accept;
    oifname "lo" meta skuid ${all} goto from_guests
  }
  chain from_guests {
    tcp flags & (syn | ack) != syn accept
    ct state established,related accept
${dns('ip', resolvers.filter(isIPv4))}${dns(
  'ip6',
  resolvers.filter((address) => !isIPv4(address)),
)}${ports.length === 0 ? '' : `    tcp dport { ${ports.join(', ')} } accept\n`}    meta l4proto tcp counter name to_host reject with tcp reset
    counter name to_host reject with icmpx type port-unreachable
  }
}
`;
}

/** Of a resolv.conf(5). Those with a zone (fe80::1%eth0) are never on `lo`. */
export function resolversIn(text: string): string[] {
  const found = text.split('\n').flatMap((line) => /^nameserver\s+(\S+)/.exec(line)?.[1] ?? []);
  return [...new Set(found.filter((address) => isIP(address) !== 0 && !address.includes('%')))];
}
