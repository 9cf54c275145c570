// What a process of this host uses, and the traffic of a network interface, as the kernel counts them. Only looks.

import { readFile } from 'node:fs/promises';

/** USER_HZ: what /proc counts processor time in, 100 a second on every Linux that Node runs on. */
const msPerTick = 10;

/** Undefined: there is no such process. */
export async function processUsage(pid: number): Promise<{ cpuMs: number; memoryBytes: number } | undefined> {
  try {
    const [stat, status] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/status`, 'utf8'),
    ]);
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the name may hold anything; fields 3 on follow it
    const ticks = Number(fields[11]) + Number(fields[12]);
    const residentKiB = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0); // a process that ends has none
    return { cpuMs: ticks * msPerTick, memoryBytes: residentKiB * 1024 };
  } catch {
    return undefined; // it has ended
  }
}

/** Of a guest behind a tap: what the host receives from the tap, the guest has sent. */
export async function tapTraffic(
  tap: string,
): Promise<{ networkReceivedBytes: number; networkSentBytes: number } | undefined> {
  const count = async (name: string): Promise<number> =>
    Number(await readFile(`/sys/class/net/${tap}/statistics/${name}`, 'utf8'));
  try {
    const [networkReceivedBytes, networkSentBytes] = await Promise.all([count('tx_bytes'), count('rx_bytes')]);
    return { networkReceivedBytes, networkSentBytes };
  } catch {
    return undefined; // there is no such interface now
  }
}
