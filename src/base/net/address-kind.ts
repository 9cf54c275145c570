// What an IP address is to someone who fetches a URL that another wrote: the open network, a private one, or a place where no image
// is ever served. Pure. Ranges: IANA's special-purpose registries for IPv4 and IPv6, and the metadata services of the large clouds.

import { BlockList, isIPv4, isIPv6 } from 'node:net';

export type AddressKind = 'public' | 'private' | 'forbidden';

const lists: Readonly<Record<'private' | 'forbidden', readonly string[]>> = {
  // Somebody's own networks, and this host itself: servers are there, and not for everyone.
  private: [
    ...['10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '198.18.0.0/15'],
    ...['::1/128', '64:ff9b:1::/48', 'fc00::/7', 'fec0::/10'],
  ],
  // No server, or one that gives a host's credentials to any local client.
  forbidden: [
    ...['0.0.0.0/8', '169.254.0.0/16', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.51.100.0/24'],
    ...['203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '100.100.100.200/32'],
    ...['::/128', '100::/64', '2001:db8::/32', '3fff::/20', 'fe80::/10', 'ff00::/8', 'fd00:ec2::254/128'],
  ],
};

const blocks = { private: blockListOf(lists.private), forbidden: blockListOf(lists.forbidden) };

/** `address` as the resolver or a parsed URL has it, without brackets. What is no address is `forbidden`. */
export function addressKind(address: string): AddressKind {
  const plain = address.split('%', 1)[0] ?? '';
  if (isIPv4(plain)) return kindIn(plain, 'ipv4');
  if (!isIPv6(plain)) return 'forbidden';
  const own = kindIn(plain, 'ipv6');
  const inner = embeddedIPv4(plain);
  // The worse of the two: what leads to an IPv4 address is as private as that.
  return inner === undefined || own === 'forbidden' ? own : worse(own, kindIn(inner, 'ipv4'));
}

function kindIn(address: string, family: 'ipv4' | 'ipv6'): AddressKind {
  if (blocks.forbidden.check(address, family)) return 'forbidden';
  return blocks.private.check(address, family) ? 'private' : 'public';
}

function worse(a: AddressKind, b: AddressKind): AddressKind {
  const order = ['public', 'private', 'forbidden'] as const;
  return order[Math.max(order.indexOf(a), order.indexOf(b))] ?? 'forbidden';
}

/** Of mapped (::ffff:0:0/96), compatible (::/96), NAT64 (64:ff9b::/96), 6to4 (2002::/16) and Teredo (2001::/32) addresses. */
function embeddedIPv4(address: string): string | undefined {
  const groups = groupsOf(address);
  const [first = 0, second = 0, third = 0] = groups;
  const last = (groups[6] ?? 0) * 65_536 + (groups[7] ?? 0);
  const zeroUntil = (count: number): boolean => groups.slice(0, count).every((group) => group === 0);
  if (zeroUntil(5) && (groups[5] === 0xffff || groups[5] === 0)) return last > 1 ? dotted(last) : undefined;
  if (zeroUntil(4) && groups[4] === 0xffff && groups[5] === 0) return dotted(last); // IPv4-translated, RFC 2765
  if (first === 0x64 && second === 0xff9b && groups.slice(2, 6).every((group) => group === 0)) return dotted(last);
  if (first === 0x2002) return dotted(second * 65_536 + third);
  if (first === 0x2001 && second === 0) return dotted(~last >>> 0);
  return undefined;
}

function dotted(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff).join('.');
}

/** The eight groups of a well-formed IPv6 address. */
function groupsOf(address: string): number[] {
  const withoutDots = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a: string, b: string, c: string, d: string) =>
    [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((group) => group.toString(16)).join(':'),
  );
  const [head = '', tail] = withoutDots.split('::');
  const parsed = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  if (tail === undefined) return parsed(head);
  const [before, after] = [parsed(head), parsed(tail)];
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', bits] = range.split('/');
    list.addSubnet(network, Number(bits), network.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}
