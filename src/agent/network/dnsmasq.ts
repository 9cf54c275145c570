// The dnsmasq of the NAT network: started when it does not run, signalled when leases change, found again by the next agent. It runs on after the
// agent ends, as guests do. A process is signalled only after its command line was checked.

import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../../base/clock.ts';
import { system } from '../../base/system.ts';
import { identify, isAlive } from '../host/processes.ts';
import { dhcpHosts, dnsmasqConfig, dnsmasqFiles, type Lease, leasesIn } from './dnsmasq-config.ts';
import type { NetworkTools } from './network-tools.ts';
import type { Subnet } from './subnet.ts';

/** Configures dnsmasq for `guests`. `directory` holds its files, which contain no secrets: dnsmasq reads them as its own user. */
export async function serveLeases(
  tools: NetworkTools,
  {
    clock,
    directory,
    subnet,
    linkIndex,
    guests,
  }: {
    readonly clock: Clock;
    readonly directory: string;
    readonly subnet: Subnet;
    /** Of the bridge. */
    readonly linkIndex: number;
    readonly guests: readonly Lease[];
  },
): Promise<void> {
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o755); // independent of the umask: dnsmasq reads leases as its own user
  const config = dnsmasqConfig({ subnet, directory, linkIndex });
  const hostsFile = join(directory, dnsmasqFiles.hosts);
  const remembered = leasesIn(await readFile(hostsFile, 'utf8').catch(() => ''));
  const configChanged = await putFile(join(directory, dnsmasqFiles.config), config);
  const hostsChanged = await putFile(hostsFile, dhcpHosts(guests, remembered));
  const pid = await runningPid(directory);
  if (pid !== undefined && !configChanged && !areTakenOver(guests, remembered)) {
    if (hostsChanged) system.signal(pid, 'SIGHUP');
    return;
  }
  if (pid !== undefined) await end(clock, pid);
  await tools.run('dnsmasq', [`--conf-file=${join(directory, dnsmasqFiles.config)}`]);
  await putFile(hostsFile, dhcpHosts(guests)); // a new dnsmasq has no earlier leases
}

/** Harmless when it does not run. */
export async function endDnsmasq(clock: Clock, directory: string): Promise<void> {
  const pid = await runningPid(directory);
  if (pid !== undefined) await end(clock, pid);
}

/** An address belonged to another card before: dnsmasq keeps it for that card until dnsmasq restarts. Guests do not notice a restart. */
function areTakenOver(guests: readonly Lease[], remembered: readonly Lease[]): boolean {
  const now = new Map(guests.map(({ address, macAddress }) => [address, macAddress]));
  return remembered.some(({ address, macAddress }) => (now.get(address) ?? macAddress) !== macAddress);
}

/** The pid of the dnsmasq that was started with the configuration in this folder, also without its pid file. */
export async function runningPid(directory: string): Promise<number | undefined> {
  const noted = await readFile(join(directory, dnsmasqFiles.pid), 'utf8').catch(() => '');
  if (await isOurs(noted.trim(), directory)) return Number(noted);
  for (const entry of await readdir('/proc')) if (await isOurs(entry, directory)) return Number(entry);
  return undefined;
}

async function isOurs(pid: string, directory: string): Promise<boolean> {
  if (!/^[1-9][0-9]{0,9}$/.test(pid)) return false;
  const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''); // gone
  return commandLine === `dnsmasq\0--conf-file=${join(directory, dnsmasqFiles.config)}\0`;
}

/** True: the content of the file was different. */
export async function putFile(path: string, text: string): Promise<boolean> {
  if ((await readFile(path, 'utf8').catch(() => undefined)) === text) return false;
  await writeFile(path, text);
  await chmod(path, 0o644);
  return true;
}

/** The time for dnsmasq to end after SIGTERM: it only closes its sockets. */
const graceMs = 2_000;

/** Resolves when the process is gone: a process that is ending has no command line and still holds its sockets, which the next one needs. */
async function end(clock: Clock, pid: number): Promise<void> {
  const ending = await identify(pid);
  system.signal(pid, 'SIGTERM');
  const untilMs = clock.monotonicMs() + graceMs;
  while (ending !== null && (await isAlive(ending))) {
    if (clock.monotonicMs() > untilMs) system.signal(pid, 'SIGKILL'); // a stopped process does not react to SIGTERM
    await sleep(clock, 20);
  }
}
