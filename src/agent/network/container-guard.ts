// Keeps containers on a network of their own from their host, from link-local addresses and from each other, with nftables tables of this agent.
// The tables stay while no agent runs. They are loaded before each start of a guest, which repairs what another program removed.
//
//     a guest on the bridge    ─┬─ the gateway, port 53 ─────► names
//                              ├─► an address of the host ──► refused, but for the ports that the operator opens
//                              ├─► link-local ──────────────► refused: a cloud's metadata service gives away the host's credentials
//                              ├─► the bridge itself ───────► refused: other guests
//                              └─► elsewhere

import { writeFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { DriverError } from '../host/driver-error.ts';
import { linkLocal } from './host-guard-rules.ts';
import { type NetworkTools, networkTools } from './network-tools.ts';

/** Of a network of the container engine. */
export interface ContainerBridge {
  /** Of the interface on the host; it exists while a container is on the network. */
  readonly name: string;
  /** In CIDR notation, with the host's address there. */
  readonly subnets: readonly { readonly subnet: string; readonly gateway?: string | undefined }[];
}

export interface ContainerGuardOptions {
  readonly table: string;
  /** TCP ports of the host that stay open to containers. */
  readonly ports: readonly number[];
  /** The file that nft reads the rules from. */
  readonly rulesFile: string;
  readonly clock: Clock;
}

export class ContainerGuard {
  readonly #options: ContainerGuardOptions;
  readonly #tools: NetworkTools;

  constructor(options: ContainerGuardOptions) {
    this.#options = options;
    this.#tools = networkTools(options.clock);
  }

  /** When this resolves, guests on this bridge reach neither the host nor each other. Throws `HypervisorFailed`. */
  async close(bridge: ContainerBridge): Promise<void> {
    const { table, ports, rulesFile } = this.#options;
    await writeFile(rulesFile, containerGuardRules({ table, ports, bridge }), { mode: 0o644 });
    await this.#tools.run('nft', ['--file', rulesFile]);
  }

  /** Removes the rules after the control plane refused this agent for good. Harmless without rules. */
  async leave(): Promise<void> {
    for (const family of ['inet', 'bridge']) {
      const at = [family, this.#options.table];
      await this.#tools.run('nft', ['add', 'table', ...at]);
      await this.#tools.run('nft', ['delete', 'table', ...at]);
    }
  }
}

/** Throws `HypervisorFailed` where the engine names what is no interface or address: the text goes to nft. IPv6 could not be told from that of others. */
export function containerGuardRules({
  table,
  ports,
  bridge: { name, subnets },
}: Pick<ContainerGuardOptions, 'table' | 'ports'> & { readonly bridge: ContainerBridge }): string {
  const sound = subnets.every(({ subnet, gateway }) => isSubnet(subnet) && (gateway === undefined || isIPv4(gateway)));
  if (!/^[A-Za-z0-9._-]{1,15}$/.test(name) || subnets.length === 0 || !sound) {
    const said = JSON.stringify({ name, subnets }).slice(0, 300);
    throw new DriverError('HypervisorFailed', `the network of containers must be a bridge with IPv4 only, not ${said}`);
  }
  const names = subnets.flatMap(({ gateway }) =>
    gateway === undefined ? [] : `    ip daddr ${gateway} meta l4proto { tcp, udp } th dport 53 accept\n`,
  );
  const opened = ports.length === 0 ? '' : `    tcp dport { ${ports.join(', ')} } accept\n`;
  const others = subnets.map(({ subnet }) => subnet).join(', ');
  return `add table inet ${table}
flush table inet ${table}
add table bridge ${table}
flush table bridge ${table}
table inet ${table} {
  counter to_host { }
  counter to_link_local { }
  counter to_other_guest { }
  chain input {
    type filter hook input priority 0; policy accept;
    iifname "${name}" goto to_host
  }
  chain to_host {
    ct state established,related accept
${names.join('')}${opened}    counter name to_host reject
  }
  chain forward {
    type filter hook forward priority 0; policy accept;
    iifname "${name}" goto from_guests
  }
  chain from_guests {
    ct state established,related accept
    oifname "${name}" counter name to_other_guest reject
    ip daddr { ${linkLocal.ip.join(', ')} } counter name to_link_local reject
    ip6 daddr { ${linkLocal.ip6.join(', ')} } counter name to_link_local reject
  }
}
table bridge ${table} {
  counter to_other_guest { }
  chain forward {
    type filter hook forward priority 0; policy accept;
    ip daddr { ${others} } counter name to_other_guest drop
  }
}
`;
}

function isSubnet(text: string): boolean {
  const [address = '', bits = '', ...more] = text.split('/');
  return more.length === 0 && isIPv4(address) && /^\d{1,2}$/.test(bits) && Number(bits) <= 32;
}
