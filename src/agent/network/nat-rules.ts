// What the kernel lets through on the NAT network, as one text for nft: pure. Applied as a whole it takes the place of what was there before,
// in one step; it names no table but ours, and keeps the counters.
//
//   guest ─► its tap ─► bridge berth0 ─┬─► this host: DHCP, DNS and the metadata service, nothing else
//            (own MAC and address only) ├─► guests of the same project: ARP and IPv4 without DHCP
//                                       └─► out, by the host's address; not to what is denied, not to link-local addresses

import { metadataAddress } from '../metadata/metadata-server.ts';
import type { NatPlace } from './address-book.ts';
import { natTapPrefix } from './guest-network.ts';
import { gatewayOf, subnetText, type Subnet } from './subnet.ts';

export const natBridge = 'berth0';
export const natTable = 'berth';

export interface NatState {
  readonly subnet: Subnet;
  /** Where the metadata service listens on the gateway's address. */
  readonly metadataPort: number;
  /** Subnets and addresses that guests do not reach. */
  readonly denied: readonly string[];
  /** Who asks which name server on the gateway's address. Others ask the one that gives leases. */
  readonly nameServers: readonly { readonly port: number; readonly addresses: readonly string[] }[];
  readonly guests: readonly Pick<NatPlace, 'tap' | 'macAddress' | 'address' | 'project'>[];
}

export function natRules(state: NatState): string {
  return `${guardRules(state)}${routeRules(state)}`;
}

/** What may come in from a guest's interface at all. Each of the host's ends is one guest's, so who sends is known before a byte is read. */
function guardRules({ guests }: NatState): string {
  const cards = guests.map(({ tap, macAddress }) => `"${tap}" . ${macAddress}`);
  const numbered = numberedByProject(guests);
  const projects = numbered.map(({ guest, number }) => `"${guest.tap}" : ${number}`);
  const members = numbered.map(({ guest, number }) => `${number} . "${guest.tap}"`);
  const places = guests.map(({ tap, macAddress, address }) => `"${tap}" . ${macAddress} . ${address}`);
  return `add table bridge ${natTable}
flush table bridge ${natTable}
table bridge ${natTable} {
  set cards { type ifname . ether_addr; }
  set places { type ifname . ether_addr . ipv4_addr; }
  map projects { type ifname : mark; }
  set members { type mark . ifname; }
  counter spoofed_mac { }
  counter spoofed_address { }
  counter spoofed_arp { }
  counter not_ipv4 { }
  counter to_other_guest { }
  chain from_guests {
    type filter hook prerouting priority -300; policy accept;
    iifname != "${natTapPrefix}*" accept
    iifname . ether saddr != @cards counter name spoofed_mac drop
    ether type ip goto of_ipv4
    ether type arp goto of_arp
    counter name not_ipv4 drop
  }
  chain of_ipv4 {
    iifname . ether saddr . ip saddr @places accept
    ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp dport 67 accept
    counter name spoofed_address drop
  }
  chain of_arp {
    iifname . arp saddr ether . arp saddr ip @places accept
    iifname . arp saddr ether @cards arp saddr ip 0.0.0.0 accept
    counter name spoofed_arp drop
  }
  chain between_guests {
    type filter hook forward priority 0; policy accept;
    iifname != "${natTapPrefix}*" accept
    meta mark set iifname map @projects
    meta mark . oifname @members goto of_project
    counter name to_other_guest drop
  }
  chain of_project {
    meta mark set 0
    ether type arp accept
    ether type != ip drop
    udp dport { 67, 68 } counter name to_other_guest drop
    accept
  }
}
${replaceSet('bridge', 'cards', cards)}${replaceSet('bridge', 'places', places)}${replaceSet('bridge', 'projects', projects, 'map')}${replaceSet('bridge', 'members', members)}`;
}

function routeRules({ subnet, metadataPort, denied, nameServers, guests }: NatState): string {
  const numbered = numberedByProject(guests);
  const projects = numbered.map(({ guest, number }) => `${guest.address} : ${number}`);
  const members = numbered.map(({ guest, number }) => `${number} . ${guest.address}`);
  const gateway = gatewayOf(subnet);
  const asking = nameServers.flatMap(({ port, addresses }) => addresses.map((address) => `${address} : ${port}`));
  const ports = nameServers.map(({ port }) => String(port));
  return `add table inet ${natTable}
flush table inet ${natTable}
table inet ${natTable} {
  set denied { type ipv4_addr; flags interval; auto-merge; }
  map projects { type ipv4_addr : mark; }
  set members { type mark . ipv4_addr; }
  map name_servers { type ipv4_addr : inet_service; }
  set name_ports { type inet_service; }
  counter to_host { }
  counter to_denied { }
  counter from_outside { }
  chain to_host {
    type filter hook input priority 0; policy accept;
    iifname != { "lo", "${natBridge}" } ip daddr ${gateway} counter name from_outside drop
    iifname != { "lo", "${natBridge}" } ip saddr ${subnetText(subnet)} counter name from_outside drop
    iifname != "${natBridge}" accept
    ct state established,related accept
    udp sport 68 udp dport 67 accept
    ip daddr ${gateway} meta l4proto { tcp, udp } th dport 53 accept
    ip daddr ${gateway} meta l4proto { tcp, udp } th dport @name_ports ct original proto-dst 53 accept
    ip daddr ${gateway} tcp dport ${metadataPort} ct original ip daddr ${metadataAddress} accept
    ip daddr ${gateway} icmp type echo-request accept
    counter name to_host drop
  }
  chain through_host {
    type filter hook forward priority 0; policy accept;
    iifname "${natBridge}" jump to_outside
    oifname "${natBridge}" ct state established,related accept
    oifname "${natBridge}" counter name from_outside drop
  }
  chain to_outside {
    oifname "${natBridge}" goto between_guests
    ip daddr @denied counter name to_denied drop
    ip saddr ${subnetText(subnet)} oifname != "${natBridge}" accept
    counter name to_denied drop
  }
  chain between_guests {
    meta mark set ip saddr map @projects
    meta mark . ip daddr @members goto of_project
    counter name to_denied drop
  }
  chain of_project {
    meta mark set 0
    accept
  }
  chain to_metadata {
    type nat hook prerouting priority -100; policy accept;
    iifname "${natBridge}" ip daddr ${metadataAddress} tcp dport 80 redirect to :${metadataPort}
    iifname "${natBridge}" ip daddr ${gateway} meta l4proto { tcp, udp } th dport 53 redirect to :ip saddr map @name_servers
  }
  chain as_host {
    type nat hook postrouting priority 100; policy accept;
    ip saddr ${subnetText(subnet)} oifname != "${natBridge}" masquerade
  }
  chain one_hop {
    type filter hook output priority 0; policy accept;
    oifname "${natBridge}" ip saddr ${gateway} tcp sport ${metadataPort} ip ttl set 1
  }
}
${replaceSet('inet', 'denied', ['169.254.0.0/16', ...denied])}${replaceSet('inet', 'projects', projects, 'map')}${replaceSet('inet', 'members', members)}${replaceSet('inet', 'name_servers', asking, 'map')}${replaceSet('inet', 'name_ports', ports)}`;
}

/** The mark is a packet's for the length of one chain, to find out whether both ends have the same. */
function numberedByProject<Guest extends { readonly project?: string }>(
  guests: readonly Guest[],
): { readonly guest: Guest; readonly number: number }[] {
  const projects = [...new Set(guests.flatMap(({ project }) => project ?? []))].sort();
  return guests.flatMap((guest) =>
    guest.project === undefined ? [] : [{ guest, number: projects.indexOf(guest.project) + 1 }],
  );
}

const replaceSet = (
  family: 'bridge' | 'inet',
  name: string,
  elements: readonly string[],
  kind: 'set' | 'map' = 'set',
): string =>
  `flush ${kind} ${family} ${natTable} ${name}\n${elements
    .map((element) => `add element ${family} ${natTable} ${name} { ${element} }\n`)
    .join('')}`;
