// The CPU time of a process, as the kernel counts it: all its threads, user and system.

import { readdirSync, readFileSync } from 'node:fs';

/** Of the threads that run now, in milliseconds. To the nanosecond, where /proc/PID/stat has hundredths of a second. */
export function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, thread) => sum + ranNs(`/proc/${pid}/task/${thread}/schedstat`) / 1e6, 0);
}

/** 0: it has just ended. */
function ranNs(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8').split(' ', 1)[0]);
  } catch {
    return 0;
  }
}
