// The usage of a process and the traffic of a network interface, as the kernel counts them. Changes nothing.

import { readFile } from 'node:fs/promises';

/** /proc counts CPU time in ticks of USER_HZ: 100 per second on every Linux that Node supports. */
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
    const residentKiB = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0); // absent while a process ends
    return { cpuMs: ticks * msPerTick, memoryBytes: residentKiB * 1024 };
  } catch {
    return undefined; // it has ended
  }
}

/** Traffic of a guest behind a tap: bytes that the host receives from the tap are bytes that the guest sent. */
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
