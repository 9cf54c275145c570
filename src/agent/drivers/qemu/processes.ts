// Identifies the QEMU process of a guest by pid, start time, uuid and working directory. A process is signalled only after all of these were
// checked again, because the kernel may have reused its pid.

import { readdir, readFile, readlink } from 'node:fs/promises';
import { sleep } from '../../../base/clock.ts';
import { system, systemClock } from '../../../base/system.ts';
import { identify, isAlive, type ProcessIdentity } from '../../host/processes.ts';

/** Searches all processes for the QEMU with this uuid (or any uuid) in this directory. */
export async function findGuestProcess(directory: string, uuid?: string): Promise<ProcessIdentity | null> {
  for (const entry of await readdir('/proc')) {
    if (!/^[0-9]+$/.test(entry) || !(await worksIn(Number(entry), directory))) continue;
    const candidate = await identify(Number(entry));
    const guest = { directory, ...(uuid === undefined ? {} : { uuid }) };
    if (candidate !== null && (await isGuestProcess(candidate, guest))) return candidate;
  }
  return null;
}

/** Searches all processes for a QEMU with this uuid, in any directory and of any parent. */
export async function findProcessOf(uuid: string): Promise<ProcessIdentity | null> {
  for (const entry of await readdir('/proc')) {
    if (!/^[0-9]+$/.test(entry)) continue;
    const words = (await readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => '')).split('\0'); // gone
    if (words[words.indexOf('-uuid') + 1] === uuid) return identify(Number(entry));
  }
  return null;
}

async function worksIn(pid: number, directory: string): Promise<boolean> {
  return (await readlink(`/proc/${pid}/cwd`).catch(() => null)) === directory; // gone, or not ours to look at
}

/** True while `process` runs and is the QEMU with this uuid in this directory. Without a uuid: any QEMU there. */
export async function isGuestProcess(
  candidate: ProcessIdentity,
  guest: { readonly directory: string; readonly uuid?: string },
): Promise<boolean> {
  if (!(await worksIn(candidate.pid, guest.directory))) return false;
  const words = (await commandLineOf(candidate)).split('\0');
  const at = words.indexOf('-uuid');
  if (at < 0 || (guest.uuid !== undefined && words[at + 1] !== guest.uuid)) return false;
  return isAlive(candidate);
}

/** An exec takes microseconds of the process's own time, which on a busy host are milliseconds. */
const becomingMsMax = 1000;
const lookEveryMs = 2;

/** Empty: the process is gone. During the exec from the starting tool to QEMU, a process has no command line for a moment. */
async function commandLineOf(candidate: ProcessIdentity): Promise<string> {
  const untilMs = systemClock.monotonicMs() + becomingMsMax;
  for (;;) {
    const commandLine = await readFile(`/proc/${candidate.pid}/cmdline`, 'utf8').catch(() => ''); // gone
    if (commandLine !== '' || !(await isAlive(candidate))) return commandLine;
    if (systemClock.monotonicMs() > untilMs) return '';
    await sleep(systemClock, lookEveryMs);
  }
}

/** Sends SIGKILL to exactly this guest's process. False: the process is gone. */
export async function killGuestProcess(
  candidate: ProcessIdentity,
  guest: { readonly directory: string; readonly uuid?: string },
): Promise<boolean> {
  return (await isGuestProcess(candidate, guest)) && system.signal(candidate.pid, 'SIGKILL');
}
