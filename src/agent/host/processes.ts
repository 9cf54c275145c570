// Identifies processes of this host by pid and start time, because the kernel reuses pids. Only looks; it signals nothing.

import { readdir, readFile } from 'node:fs/promises';

export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks between the kernel's boot and the process's start. */
  readonly startTicks: number;
}

/** The process with this pid, or null if there is none or only a zombie. */
export async function identify(pid: number): Promise<ProcessIdentity | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null); // gone, or never was
  if (stat === null) return null;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the name may hold anything; fields 3 on follow it
  const startTicks = Number(fields[19]);
  if (fields[0] === 'X' || !Number.isSafeInteger(startTicks)) return null;
  if (fields[0] === 'Z' && !(await hasOtherThreads(pid))) return null;
  return { pid, startTicks };
}

/** A process whose main thread is a zombie still holds its files, ports and directory until its last thread ends. */
async function hasOtherThreads(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []); // gone meanwhile
  return threads.length > 1;
}

export async function isAlive(candidate: ProcessIdentity): Promise<boolean> {
  return (await identify(candidate.pid))?.startTicks === candidate.startTicks;
}
