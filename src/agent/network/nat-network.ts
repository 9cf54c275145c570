// The NAT network of this host: a bridge of the agent, a tap for each guest, dnsmasq, nftables and the metadata service. links.ts, nat-rules.ts
// and dnsmasq-config.ts decide the target state; this file applies it, one change after the other, and repairs it when something is missing.

import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { assert } from '../../base/assert.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { DriverError } from '../host/driver-error.ts';
import { readMetadata } from '../metadata/metadata-file.ts';
import { type MetadataServer, type MetadataTokenPolicy, serveMetadata } from '../metadata/metadata-server.ts';
import { type AddressBook, checkPlace, createAddressBook, type NatGuest } from './address-book.ts';
import { endDnsmasq, runningPid, serveLeases } from './dnsmasq.ts';
import { type GuestNetwork, natTapPrefix, tapName } from './guest-network.ts';
import type { HostNetwork, NewGuest, PlacedGuest } from './host-network.ts';
import { bridgeCommands, bridgeFault, guardCommands, type Link, removeCommands, tapCommands } from './links.ts';
import { natBridge, natRules, natTable } from './nat-rules.ts';
import { type NetworkTools, networkTools } from './network-tools.ts';
import { OneAtATime } from './one-at-a-time.ts';
import { allServed, endNames, type NameServer, planNameServers, serveNames } from './name-servers.ts';
import { gatewayOf, parseNatSubnet, type Subnet } from './subnet.ts';

export interface NatNetworkOptions {
  /** Such as 10.77.0.0/16. */
  readonly subnet: string;
  /** Subnets and addresses that guests do not reach. */
  readonly denied: readonly string[];
  readonly metadataTokens: MetadataTokenPolicy;
  /** Identifies the agent that the bridge belongs to: two agents must not share one. */
  readonly owner: string;
  /** For files that a restart of the host makes worthless. All users may pass through it. */
  readonly runDirectory: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly randomSecret: (length: number) => Buffer;
}

/** How long guests may be without DHCP, DNS or rules after another program removed them. */
const lookAgainMs = 10_000;
const forwardingFile = '/proc/sys/net/ipv4/ip_forward';

export function createNatNetwork(options: NatNetworkOptions): HostNetwork {
  return new NatNetwork(options);
}

class NatNetwork implements HostNetwork {
  readonly kind = 'nat';
  readonly #options: NatNetworkOptions;
  readonly #subnet: Subnet;
  /** The alias of the bridge, which says whose it is. */
  readonly #mark: string;
  readonly #tools: NetworkTools;
  readonly #book: AddressBook;
  readonly #seeingToAll = new OneAtATime(() => this.#seeToAll());
  #metadata: MetadataServer | undefined;
  #nameServers: readonly NameServer[] = [];
  #timer: Timer | undefined;
  #closed = false;
  /** False: something is missing or wrong, or nothing was checked yet. */
  #whole = false;

  constructor(options: NatNetworkOptions) {
    const subnet = parseNatSubnet(options.subnet);
    assert(subnet !== undefined, 'the NAT network has a subnet'); // checked with the configuration
    this.#options = options;
    this.#subnet = subnet;
    this.#mark = `berth ${options.owner}`;
    this.#tools = networkTools(options.clock);
    this.#book = createAddressBook(subnet);
  }

  async fault(): Promise<string | undefined> {
    try {
      await this.#tools.run('nft', ['--version']);
      await this.#tools.run('dnsmasq', ['--version']);
      return bridgeFault(await this.#tools.links(), { subnet: this.#subnet, mark: this.#mark });
    } catch (error) {
      return describeError(error);
    }
  }

  reserve(guest: NewGuest): GuestNetwork {
    return this.#book.reserve(guest);
  }

  adopt(guest: PlacedGuest): void {
    if (guest.network.kind === 'nat') this.#book.adopt(natGuest(guest));
  }

  async settle(): Promise<void> {
    await this.#look();
    this.#lookAgain();
  }

  async attach(placed: PlacedGuest): Promise<void> {
    const guest = natGuest(placed);
    checkPlace(this.#subnet, guest);
    if (this.#closed) throw new DriverError('Aborted', `the start of ${guest.instanceId} was given up`);
    this.#book.adopt(guest);
    await this.#seeingToAll.run();
    await this.#connect(await this.#tools.links(), guest);
  }

  async release(instanceId: string): Promise<void> {
    const had = this.#book.guests().some((each) => each.instanceId === instanceId);
    // Removes the interface before the address is free, so that no two interfaces have one address.
    await this.#tools.runAll(removeCommands(await this.#tools.links(), tapName('nat', instanceId)));
    this.#book.release(instanceId);
    this.#metadata?.forget(instanceId);
    if (!had || !this.#whole || this.#closed) return;
    await this.#seeingToAll.run().catch((error: unknown) => {
      this.#whole = false; // rules that are left over name an interface that is gone, so the release need not wait
      this.#options.log.warn("cannot see to the guests' network; trying again", { error: describeError(error) });
    });
  }

  async leave(): Promise<void> {
    await this.close();
    await this.#seeingToAll.quiet();
    await this.#takeAway();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#metadata?.close();
  }

  /** Everything except the taps, for all guests in the book. */
  async #seeToAll(): Promise<void> {
    const tools = this.#tools;
    const { clock, denied, runDirectory } = this.#options;
    const [subnet, mark] = [this.#subnet, this.#mark];
    const links = await tools.links();
    const fault = bridgeFault(links, { subnet, mark });
    if (fault !== undefined) throw new DriverError('HypervisorFailed', `cannot see to the guests' network: ${fault}`);
    await tools.runAll(bridgeCommands(links, { subnet, mark, macAddress: bridgeMacAddress(mark) }));
    this.#metadata ??= await this.#serveMetadata();
    const guests = this.#book.guests();
    await mkdir(runDirectory, { recursive: true });
    const rules = join(runDirectory, 'rules.nft');
    const nameServers = await planNameServers(guests, { directory: runDirectory, gateway: gatewayOf(subnet) });
    this.#nameServers = nameServers;
    const metadataPort = this.#metadata.port;
    await writeFile(rules, natRules({ subnet, metadataPort, denied, nameServers, guests }));
    await tools.run('nft', ['--file', rules]);
    // Forwarding is enabled only after the rules are loaded, so that no packet of a guest passes without them.
    if ((await readFile(forwardingFile, 'utf8')).trim() !== '1') await writeFile(forwardingFile, '1');
    const linkIndex = (await tools.links()).find(({ name }) => name === natBridge)?.index ?? 0;
    await serveLeases(tools, { clock, directory: runDirectory, subnet, linkIndex, guests });
    await serveNames(tools, { clock, directory: runDirectory, linkIndex, servers: nameServers });
    for (const guest of guests) if (isAdrift(links, guest)) await this.#connect(links, guest);
    this.#whole = true;
  }

  #serveMetadata(): Promise<MetadataServer> {
    return serveMetadata(gatewayOf(this.#subnet), {
      ...this.#options,
      guestAt: (address) => this.#book.guestAt(address)?.instanceId,
      metadataOf: async (instanceId) => {
        const guest = this.#book.guests().find((each) => each.instanceId === instanceId);
        return guest && readMetadata(guest.directory);
      },
      tokens: this.#options.metadataTokens,
    });
  }

  #connect(links: readonly Link[], guest: NatGuest): Promise<void> {
    const { tap } = guest;
    return this.#tools.runAll([...tapCommands(links, { tap, bridge: natBridge }), ...guardCommands(guest)]);
  }

  #lookAgain(): void {
    this.#timer?.cancel();
    if (this.#closed) return;
    const look = (): void => void this.#look().then(() => this.#lookAgain());
    this.#timer = this.#options.clock.setTimer(lookAgainMs, look, { background: true });
  }

  async #look(): Promise<void> {
    try {
      const needed = this.#book.guests().length > 0 && !this.#closed;
      if (needed && !(this.#whole && (await this.#isThere()))) await this.#seeingToAll.run();
    } catch (error) {
      this.#whole = false;
      this.#options.log.error("cannot see to the guests' network; trying again", { error: describeError(error) });
    }
  }

  /** False: something was removed since. */
  async #isThere(): Promise<boolean> {
    const { runDirectory } = this.#options;
    const links = await this.#tools.links();
    if (!links.some(({ name }) => name === natBridge)) return false;
    if (this.#book.guests().some((guest) => isAdrift(links, guest))) return false;
    if ((await runningPid(runDirectory)) === undefined) return false;
    if (!(await allServed(runDirectory, this.#nameServers))) return false;
    const tables = await this.#tools.run('nft', ['list', 'tables']);
    return ['bridge', 'inet'].every((family) => tables.split('\n').includes(`table ${family} ${natTable}`));
  }

  async #takeAway(): Promise<void> {
    const { clock, log, runDirectory } = this.#options;
    const links = await this.#tools.links();
    if (links.find(({ name }) => name === natBridge)?.alias !== this.#mark) return; // there is no bridge, or a foreign one
    if (links.some(({ name, carrier }) => name.startsWith(natTapPrefix) && carrier)) {
      log.warn("left the guests' network in place: guests run on it");
      return;
    }
    await this.#tools.run('ip', ['link', 'delete', natBridge]);
    await endDnsmasq(clock, runDirectory);
    await endNames(clock, { directory: runDirectory });
    // Adds each table first, so that the deletion also succeeds when another program has removed it.
    for (const family of ['bridge', 'inet'])
      await this.#tools.run('nft', [`add table ${family} ${natTable}; delete table ${family} ${natTable}`]);
  }
}

/** The guest's interface exists and has no bridge: another program removed the bridge. */
function isAdrift(links: readonly Link[], { tap }: NatGuest): boolean {
  const there = links.find(({ name }) => name === tap);
  return there !== undefined && there.master !== natBridge;
}

function natGuest({ instanceId, directory, network }: PlacedGuest): NatGuest {
  if (network.kind === 'nat') return { ...network, instanceId, directory };
  throw new DriverError(
    'HypervisorFailed',
    `cannot connect ${instanceId}: it was made for the bridge ${network.bridge}, and this agent's network is nat now; set network: bridge:${network.bridge} again, or delete the instance`,
  );
}

function bridgeMacAddress(mark: string): string {
  const hex = createHash('sha256').update(mark).digest('hex');
  return `02:62:${hex.slice(0, 2)}:${hex.slice(2, 4)}:${hex.slice(4, 6)}:${hex.slice(6, 8)}`;
}
