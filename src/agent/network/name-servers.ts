// The name servers of projects on the NAT network, a dnsmasq each: started when a project's first guest comes, told when guests come and go, ended
// after its last. They live on when the agent ends, and the next one finds them.

import { createSocket } from 'node:dgram';
import { chmod, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { system } from '../../base/system.ts';
import { endDnsmasq, putFile, runningPid } from './dnsmasq.ts';
import { dnsmasqFiles, nameServerConfig } from './dnsmasq-config.ts';
import type { NetworkTools } from './network-tools.ts';
import { givePorts, projectNames } from './project-names.ts';

export interface NameServer {
  readonly key: string;
  readonly port: number;
  readonly hosts: string;
  readonly addresses: readonly string[];
}

const prefix = 'names-';
const folderOf = (directory: string, key: string): string => join(directory, `${prefix}${key}`);

/** Which there are to be. Only reads; one that runs keeps its port. */
export async function planNameServers(
  guests: Parameters<typeof projectNames>[0],
  { directory, gateway }: { readonly directory: string; readonly gateway: string },
): Promise<readonly NameServer[]> {
  const projects = projectNames(guests);
  const remembered = new Map<string, number>();
  for (const { key } of projects) {
    const config = await readFile(join(folderOf(directory, key), dnsmasqFiles.config), 'utf8').catch(() => '');
    const port = /^port=(\d+)$/m.exec(config)?.[1];
    if (port !== undefined) remembered.set(key, Number(port));
  }
  return givePorts(projects, { remembered, isFree: (port) => isFree(gateway, port) });
}

/** Brings them to what was planned. Throws `HypervisorFailed`. */
export async function serveNames(
  tools: NetworkTools,
  {
    clock,
    directory,
    linkIndex,
    servers,
  }: {
    readonly clock: Clock;
    readonly directory: string;
    /** Of the bridge. */
    readonly linkIndex: number;
    readonly servers: readonly NameServer[];
  },
): Promise<void> {
  await endNames(clock, { directory, except: servers });
  for (const { key, port, hosts } of servers) {
    const folder = folderOf(directory, key);
    await mkdir(folder, { recursive: true });
    await chmod(folder, 0o755); // whatever the umask is: it reads names as a user of its own
    const config = join(folder, dnsmasqFiles.config);
    const hostsChanged = await putFile(join(folder, dnsmasqFiles.names), hosts);
    const configChanged = await putFile(config, nameServerConfig({ directory: folder, port, linkIndex }));
    const pid = await runningPid(folder);
    if (pid !== undefined && !configChanged) {
      if (hostsChanged) system.signal(pid, 'SIGHUP');
      continue;
    }
    await endDnsmasq(clock, folder);
    try {
      await tools.run('dnsmasq', [`--conf-file=${config}`]);
    } catch (error) {
      await rm(config, { force: true }); // perhaps its port is another's now: the next try has a new one
      throw error;
    }
  }
}

/** Ends those of projects that have no guest any more. */
export async function endNames(
  clock: Clock,
  { directory, except = [] }: { readonly directory: string; readonly except?: readonly NameServer[] },
): Promise<void> {
  const kept = new Set(except.map(({ key }) => `${prefix}${key}`));
  for (const name of await readdir(directory).catch(() => [])) {
    if (!name.startsWith(prefix) || kept.has(name)) continue;
    await endDnsmasq(clock, join(directory, name));
    await rm(join(directory, name), { recursive: true, force: true });
  }
}

export async function allServed(directory: string, servers: readonly NameServer[]): Promise<boolean> {
  for (const { key } of servers) if ((await runningPid(folderOf(directory, key))) === undefined) return false;
  return true;
}

/** For TCP and UDP. */
async function isFree(address: string, port: number): Promise<boolean> {
  const tcp = createServer();
  const tcpFree = await new Promise<boolean>((resolve) => {
    tcp.once('error', () => resolve(false)).listen(port, address, () => tcp.close(() => resolve(true)));
  });
  if (!tcpFree) return false;
  const udp = createSocket('udp4');
  return new Promise<boolean>((resolve) => {
    udp.once('error', () => udp.close(() => resolve(false))).bind(port, address, () => udp.close(() => resolve(true)));
  });
}
