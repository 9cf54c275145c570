// Finds processes of this machine again: by pid and start time, because the kernel reuses pids, and by a variable of their environment,
// which what they start inherits. Only looks; it signals nothing.

import { readdir, readFile } from 'node:fs/promises';

export interface ProcessId {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks between the kernel's boot and the process's start. */
  readonly startTicks: number;
}

/** Of the kernel's clock in /proc, on every architecture that Node runs on (USER_HZ). */
const ticksPerSecond = 100;

export async function isRunning({ pid, startTicks }: ProcessId): Promise<boolean> {
  const fields = await statOf(pid);
  return fields !== undefined && Number(fields[19]) === startTicks && fields[0] !== 'Z' && fields[0] !== 'X';
}

/** How long ago it started; clocks that are set do not change it. */
export async function ageMs({ startTicks }: ProcessId): Promise<number> {
  const uptime = await readFile('/proc/uptime', 'utf8');
  return Math.max(0, (Number(uptime.split(' ')[0]) - startTicks / ticksPerSecond) * 1_000);
}

/** Changes with each boot, after which no process of before runs. */
export async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

export interface FoundProcess extends ProcessId {
  /** Its process group. */
  readonly group: number;
}

/** All that were started with `NAME=VALUE` in their environment, as far as this process may read it. */
export async function withVariable(variable: string): Promise<FoundProcess[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found: FoundProcess[] = [];
  for (const pid of pids) {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => ''); // gone, or of another user
    if (!environment.split('\0').includes(variable)) continue;
    const fields = await statOf(pid);
    if (fields !== undefined) found.push({ pid, startTicks: Number(fields[19]), group: Number(fields[2]) });
  }
  return found;
}

/** The fields from the third on; undefined: there is no such process. */
async function statOf(pid: number): Promise<string[] | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined); // gone, or never was
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' '); // the name may hold anything
}
