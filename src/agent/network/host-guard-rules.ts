// What keeps guests on QEMU's own network from their host, and from networks that the host reaches: what a guest connects to, QEMU connects to as the
// guest's user, so the kernel knows who asks. Pure: it makes text for nft, of one table, and names no other.
//
//   a user of guests ─┬─ begins nothing ─────────► answers of published ports, also of connections that were there before the rules
//                     ├─ a resolver, port 53 ────► names (10.0.2.3 in the guest)
//                     ├─► lo ─┬─ hostPortsReached ► what the operator lets them
//                     │       └─ else: refused, counted (all that goes to one of the host's own addresses goes by lo)
//                     ├─► link-local ─────────────► refused, counted: a cloud's metadata service gives away the host's credentials
//                     ├─► private ────────────────► refused, counted, where the operator says so
//                     └─► elsewhere

import { isIP, isIPv4, isIPv6 } from 'node:net';
import type { GuestUsers } from '../host/guest-user.ts';

export interface HostGuardState {
  readonly table: string;
  /** Absent: only those `besides`. */
  readonly users?: GuestUsers;
  /** More of them, one by one. */
  readonly besides: readonly number[];
  /** Whether they reach what listens on the host. Default: they do not. */
  readonly hostOpen?: boolean;
  /** Addresses of the host's resolvers; whether they are on the host itself makes no difference here. */
  readonly resolvers: readonly string[];
  /** Of TCP, at all addresses of the host. */
  readonly ports: readonly number[];
  readonly privateAddresses: 'allow' | 'deny';
}

interface Ranges {
  readonly ip: readonly string[];
  readonly ip6: readonly string[];
}

/** The last of each family are no link-local ones: there, too, large clouds have their metadata services. */
export const linkLocal: Ranges = {
  ip: ['169.254.0.0/16', '224.0.0.0/24', '100.100.100.200'],
  ip6: ['fe80::/10', 'ff02::/16', 'fd00:ec2::254'],
};
const privateRanges: Ranges = { ip: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'], ip6: ['fc00::/7'] };

/** One agent's alone, wherever its data directory is. */
export function hostGuardTable(agentId: string): string {
  return `berth_${agentId}`;
}

export function hostGuardRules(state: HostGuardState): string {
  const { table, resolvers, ports, privateAddresses, hostOpen = false } = state;
  return `add table inet ${table}
flush table inet ${table}
table inet ${table} {
  counter to_host { }
  counter to_link_local { }
  counter to_private { }
  chain output {
    type filter hook output priority 0; policy accept;
    meta skuid ${usersText(state)} goto from_guests
  }
  chain from_guests {
    tcp flags & (syn | ack) != syn accept
    ct state established,related accept
${resolverRules({ ip: resolvers.filter(isIPv4), ip6: resolvers.filter(isIPv6) })}    oifname "lo" ${hostOpen ? 'accept' : 'goto to_host'}
${jumpRules(linkLocal, 'to_link_local')}${privateAddresses === 'deny' ? jumpRules(privateRanges, 'to_private') : ''}  }
  chain to_host {
${ports.length === 0 ? '' : `    tcp dport { ${ports.join(', ')} } accept\n`}${refuseRules('to_host')}  }
  chain to_link_local {
${refuseRules('to_link_local')}  }
  chain to_private {
${refuseRules('to_private')}  }
}
`;
}

function usersText({ users, besides }: HostGuardState): string {
  const range =
    users === undefined
      ? []
      : [users.count === 1 ? String(users.first) : `${users.first}-${users.first + users.count - 1}`];
  return besides.length === 0 ? range.join('') : `{ ${[...range, ...besides].join(', ')} }`;
}

const resolverRules = (resolvers: Ranges): string =>
  rulesFor(resolvers, 'meta l4proto { tcp, udp } th dport 53 accept');
const jumpRules = (to: Ranges, chain: string): string => rulesFor(to, `goto ${chain}`);

function rulesFor(ranges: Ranges, verdict: string): string {
  return (['ip', 'ip6'] as const)
    .filter((family) => ranges[family].length > 0)
    .map((family) => `    ${family} daddr { ${ranges[family].join(', ')} } ${verdict}\n`)
    .join('');
}

const refuseRules = (counter: string): string =>
  `    meta l4proto tcp counter name ${counter} reject with tcp reset
    counter name ${counter} reject with icmpx type port-unreachable
`;

/** Of a resolv.conf(5), without their zones: a rule that names one would be refused while its link is away. */
export function resolversIn(text: string): string[] {
  const named = text.split('\n').flatMap((line) => /^nameserver\s+([^\s%]+)/.exec(line)?.[1] ?? []);
  return [...new Set(named.filter((address) => isIP(address) !== 0))];
}
