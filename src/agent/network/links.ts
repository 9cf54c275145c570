// The host's network links: what `ip` says of them, and which commands make them as they should be: pure. No command changes a link that is
// not Berth's own.

import { Type } from 'typebox';
import { Check } from 'typebox/value';
import type { NatPlace } from './address-book.ts';
import { natBridge } from './nat-rules.ts';
import { contains, gatewayOf, subnetText, type Subnet } from './subnet.ts';

const Links = Type.Array(
  Type.Object({
    ifindex: Type.Integer(),
    ifname: Type.String(),
    flags: Type.Optional(Type.Array(Type.String())),
    master: Type.Optional(Type.String()),
    ifalias: Type.Optional(Type.String()),
    linkinfo: Type.Optional(Type.Object({ info_kind: Type.Optional(Type.String()) })),
    addr_info: Type.Array(
      Type.Object({
        family: Type.Optional(Type.String()),
        local: Type.Optional(Type.String()),
        prefixlen: Type.Optional(Type.Integer()),
      }),
    ),
  }),
);

export interface Link {
  /** Changes when the link is created again. */
  readonly index: number;
  readonly name: string;
  readonly bridge: boolean;
  /** The bridge that it is a port of. */
  readonly master: string | undefined;
  readonly alias: string | undefined;
  /** Somebody is at its other end: of a tap, a guest that runs. */
  readonly carrier: boolean;
  /** IPv4. */
  readonly addresses: readonly { readonly address: string; readonly prefix: number }[];
}

export interface Command {
  readonly program: 'ip' | 'bridge';
  readonly arguments: readonly string[];
}

/** From `ip -json -details address show`. Throws when that is not what was said. */
export function readLinks(said: string): Link[] {
  const value: unknown = JSON.parse(said);
  if (!Check(Links, value)) throw new Error('"ip -json -details address show" says something else than links');
  return value.map(({ ifindex, ifname, flags = [], master, ifalias, linkinfo, addr_info }) => ({
    index: ifindex,
    name: ifname,
    bridge: linkinfo?.info_kind === 'bridge',
    master,
    alias: ifalias,
    carrier: flags.includes('LOWER_UP'),
    addresses: addr_info.flatMap(({ family, local, prefixlen }) =>
      family === 'inet' && local !== undefined && prefixlen !== undefined
        ? [{ address: local, prefix: prefixlen }]
        : [],
    ),
  }));
}

const ip = (words: string): Command => ({ program: 'ip', arguments: words.split(' ') });

/** Before it has its name and mark, the bridge has this name: so one with the name and without the mark is somebody else's. */
const unfinished = `${natBridge}-new`;

/** Why the bridge cannot be ours, for people; undefined: it can. `mark` is what no other agent writes on its bridge. */
export function bridgeFault(
  links: readonly Link[],
  { subnet, mark }: { readonly subnet: Subnet; readonly mark: string },
): string | undefined {
  const there = links.find(({ name }) => name === natBridge);
  if (there !== undefined && there.alias !== mark) {
    const whose = there.alias?.startsWith('berth ') ? `is of another agent (${there.alias})` : 'was not made by Berth';
    return `the link ${natBridge} ${whose}; remove it ("ip link delete ${natBridge}") if it is not in use`;
  }
  for (const { name, addresses } of links) {
    const inTheWay = name === natBridge ? undefined : addresses.find(({ address }) => contains(subnet, address));
    if (inTheWay !== undefined) {
      return `natSubnet ${subnetText(subnet)} is in use: ${name} has ${inTheWay.address}/${inTheWay.prefix}; choose another natSubnet`;
    }
  }
  return undefined;
}

/** Makes the bridge what it should be. Its own MAC address is stated, for else it would change with the guests that come and go. */
export function bridgeCommands(
  links: readonly Link[],
  { subnet, mark, macAddress }: { readonly subnet: Subnet; readonly mark: string; readonly macAddress: string },
): Command[] {
  const there = links.find(({ name }) => name === natBridge);
  const wanted = { address: gatewayOf(subnet), prefix: subnet.prefix };
  const commands: Command[] = [];
  if (there === undefined) {
    if (links.some(({ name }) => name === unfinished)) commands.push(ip(`link delete ${unfinished}`));
    commands.push(ip(`link add name ${unfinished} address ${macAddress} type bridge`));
    commands.push(ip(`link set dev ${unfinished} addrgenmode none`));
    commands.push({ program: 'ip', arguments: ['link', 'set', 'dev', unfinished, 'alias', mark] });
    commands.push(ip(`link set dev ${unfinished} name ${natBridge}`));
  }
  for (const { address, prefix } of there?.addresses ?? []) {
    if (address !== wanted.address || prefix !== wanted.prefix)
      commands.push(ip(`address delete ${address}/${prefix} dev ${natBridge}`));
  }
  commands.push(ip(`address replace ${wanted.address}/${wanted.prefix} dev ${natBridge}`));
  commands.push(ip(`link set dev ${natBridge} up`));
  return commands;
}

/** The host's end of a guest's interface, as a port of `bridge`. */
export function tapCommands(
  links: readonly Link[],
  { tap, bridge }: { readonly tap: string; readonly bridge: string },
): Command[] {
  const there = links.find(({ name }) => name === tap);
  return [
    ...(there === undefined ? [ip(`tuntap add dev ${tap} mode tap`), ip(`link set dev ${tap} addrgenmode none`)] : []),
    ...(there?.master === bridge ? [] : [ip(`link set dev ${tap} master ${bridge}`)]),
    ip(`link set dev ${tap} up`),
  ];
}

/**
 * Guests of one host see nothing of one another's: what is for one goes to its port alone. No port leads to another, but to those of the same
 * project, which nat-rules.ts tells apart.
 */
export function guardCommands({
  tap,
  macAddress,
  project,
}: Pick<NatPlace, 'tap' | 'macAddress' | 'project'>): Command[] {
  const isolated = project === undefined ? 'on' : 'off';
  return [
    ip(`link set dev ${tap} type bridge_slave isolated ${isolated} learning off flood off mcast_flood off`),
    { program: 'bridge', arguments: ['fdb', 'replace', macAddress, 'dev', tap, 'master', 'static'] },
  ];
}

export const removeCommands = (links: readonly Link[], tap: string): Command[] =>
  links.some(({ name }) => name === tap) ? [ip(`link delete ${tap}`)] : [];
