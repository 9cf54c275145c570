// The NAT network of this host: a bridge that the agent makes, a tap for each guest, dnsmasq, nftables and the metadata service. What should be
// is decided in links.ts, nat-rules.ts and dnsmasq-config.ts; here it is done, one change after the other, and done again until it is so.

import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { assert } from '../../base/assert.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { DriverError } from '../host/driver-error.ts';
import { readMetadata } from '../metadata/metadata-file.ts';
import { type MetadataServer, type MetadataTokenPolicy, serveMetadata } from '../metadata/metadata-server.ts';
import { checkPlace, createAddressBook, type NatGuest } from './address-book.ts';
import { endDnsmasq, runningPid, serveLeases } from './dnsmasq.ts';
import { natTapPrefix, tapName } from './guest-network.ts';
import type { HostNetwork, PlacedGuest } from './host-network.ts';
import { bridgeCommands, bridgeFault, guardCommands, type Link, removeCommands, tapCommands } from './links.ts';
import { natBridge, natRules, natTable } from './nat-rules.ts';
import { networkTools } from './network-tools.ts';
import { allServed, endNames, type NameServer, planNameServers, serveNames } from './name-servers.ts';
import { gatewayOf, parseNatSubnet } from './subnet.ts';

export interface NatNetworkOptions {
  /** Such as 10.77.0.0/16. */
  readonly subnet: string;
  /** What guests do not reach: subnets and addresses. */
  readonly denied: readonly string[];
  readonly metadataTokens: MetadataTokenPolicy;
  /** Says whose bridge it is: two agents must not share one. */
  readonly owner: string;
  /** For files that are worth nothing after a restart of the host; passable for everyone. */
  readonly runDirectory: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly randomSecret: (length: number) => Buffer;
}

/** How long guests may be without DHCP, DNS or rules when someone took them away. */
const lookAgainMs = 10_000;
const forwardingFile = '/proc/sys/net/ipv4/ip_forward';

export function createNatNetwork(options: NatNetworkOptions): HostNetwork {
  const { clock, log, runDirectory } = options;
  const subnet = parseNatSubnet(options.subnet);
  assert(subnet !== undefined, 'the NAT network has a subnet'); // checked with the configuration
  const mark = `berth ${options.owner}`;
  const tools = networkTools(clock);
  const book = createAddressBook(subnet);
  let metadata: MetadataServer | undefined;
  let timer: Timer | undefined;
  let closed = false;
  /** False: something is not as it should be, or nobody has looked yet. */
  let whole = false;
  let nameServers: readonly NameServer[] = [];

  /** Everything but the taps, for all guests in the book. */
  const seeToAll = async (): Promise<void> => {
    const links = await tools.links();
    const fault = bridgeFault(links, { subnet, mark });
    if (fault !== undefined) throw new DriverError('HypervisorFailed', `cannot see to the guests' network: ${fault}`);
    await tools.runAll(bridgeCommands(links, { subnet, mark, macAddress: bridgeMacAddress(mark) }));
    metadata ??= await serveMetadata(gatewayOf(subnet), {
      ...options,
      guestAt: (address) => book.guestAt(address)?.instanceId,
      metadataOf: async (instanceId) => {
        const guest = book.guests().find((each) => each.instanceId === instanceId);
        return guest && readMetadata(guest.directory);
      },
      tokens: options.metadataTokens,
    });
    const guests = book.guests();
    await mkdir(runDirectory, { recursive: true });
    const rules = join(runDirectory, 'rules.nft');
    nameServers = await planNameServers(guests, { directory: runDirectory, gateway: gatewayOf(subnet) });
    const { denied } = options;
    await writeFile(rules, natRules({ subnet, metadataPort: metadata.port, denied, nameServers, guests }));
    await tools.run('nft', ['--file', rules]);
    // Only now: no guest's packet is let out before the rules are there.
    if ((await readFile(forwardingFile, 'utf8')).trim() !== '1') await writeFile(forwardingFile, '1');
    const linkIndex = (await tools.links()).find(({ name }) => name === natBridge)?.index ?? 0;
    await serveLeases(tools, { clock, directory: runDirectory, subnet, linkIndex, guests });
    await serveNames(tools, { clock, directory: runDirectory, linkIndex, servers: nameServers });
    for (const guest of guests) if (isAdrift(links, guest)) await connect(links, guest);
    whole = true;
  };

  const takeAway = async (): Promise<void> => {
    const links = await tools.links();
    if (links.find(({ name }) => name === natBridge)?.alias !== mark) return; // none, or somebody else's
    if (links.some(({ name, carrier }) => name.startsWith(natTapPrefix) && carrier)) {
      log.warn("left the guests' network in place: guests run on it");
      return;
    }
    await tools.run('ip', ['link', 'delete', natBridge]);
    await endDnsmasq(clock, runDirectory);
    await endNames(clock, { directory: runDirectory });
    for (const family of ['bridge', 'inet'])
      await tools.run('nft', [`add table ${family} ${natTable}; delete table ${family} ${natTable}`]); // also where somebody was faster
  };

  const connect = (links: readonly Link[], guest: NatGuest): Promise<void> =>
    tools.runAll([...tapCommands(links, { tap: guest.tap, bridge: natBridge }), ...guardCommands(guest)]);

  const inTurn = oneAtATime(seeToAll);
  let atWork: Promise<unknown> = Promise.resolve();
  const all = (): Promise<void> => {
    const run = inTurn();
    atWork = run.catch(() => {}); // is told to whoever asked
    return run;
  };
  const lookAgain = (): void => {
    timer?.cancel();
    if (!closed) timer = clock.setTimer(lookAgainMs, () => void look().then(lookAgain), { background: true });
  };
  const look = async (): Promise<void> => {
    try {
      if (book.guests().length > 0 && !closed && !(whole && (await isThere()))) await all();
    } catch (error) {
      whole = false;
      log.error("cannot see to the guests' network; trying again", { error: describeError(error) });
    }
  };
  /** Whether nobody took anything away since. */
  const isThere = async (): Promise<boolean> => {
    const links = await tools.links();
    if (!links.some(({ name }) => name === natBridge) || book.guests().some((guest) => isAdrift(links, guest)))
      return false;
    if ((await runningPid(runDirectory)) === undefined || !(await allServed(runDirectory, nameServers))) return false;
    const tables = await tools.run('nft', ['list', 'tables']);
    return ['bridge', 'inet'].every((family) => tables.split('\n').includes(`table ${family} ${natTable}`));
  };

  const close = async (): Promise<void> => {
    closed = true;
    timer?.cancel();
    await metadata?.close();
  };

  return {
    kind: 'nat',
    async fault() {
      try {
        await tools.run('nft', ['--version']);
        await tools.run('dnsmasq', ['--version']);
        return bridgeFault(await tools.links(), { subnet, mark });
      } catch (error) {
        return describeError(error);
      }
    },
    reserve: (guest) => book.reserve(guest),
    adopt(guest) {
      if (guest.network.kind === 'nat') book.adopt(natGuest(guest));
    },
    async settle() {
      await look();
      lookAgain();
    },
    async attach(placed) {
      const guest = natGuest(placed);
      checkPlace(subnet, guest);
      if (closed) throw new DriverError('Aborted', `the start of ${guest.instanceId} was given up`);
      book.adopt(guest);
      await all();
      await connect(await tools.links(), guest);
    },
    async release(instanceId) {
      const had = book.guests().some((each) => each.instanceId === instanceId);
      // The interface first: whoever has the address next must not meet the one that had it.
      await tools.runAll(removeCommands(await tools.links(), tapName('nat', instanceId)));
      book.release(instanceId);
      metadata?.forget(instanceId);
      if (!had || !whole || closed) return;
      await all().catch((error: unknown) => {
        whole = false; // what is left over names an interface that is gone; a guest must not be kept for it
        log.warn("cannot see to the guests' network; trying again", { error: describeError(error) });
      });
    },
    async leave() {
      await close();
      await atWork;
      await takeAway();
    },
    close,
  };
}

/** Its interface is there, and connected to nothing: someone took the bridge away. */
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

/** Of calls that come while one is at work, one more run does for all. */
function oneAtATime(act: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const start = (): Promise<void> => {
    current = act().finally(() => {
      current = undefined;
    });
    return current;
  };
  return () => {
    if (current === undefined) return start();
    next ??= current
      .catch(() => {}) // was told to those who waited for it
      .then(() => {
        next = undefined;
        return start();
      });
    return next;
  };
}
