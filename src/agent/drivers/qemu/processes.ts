// Tells our QEMU processes from strangers, by pid, start time, uuid and working directory. Signals go to a process only
// after all of that was looked up again: a pid may have been given to somebody else since.

import { readdir, readFile, readlink } from 'node:fs/promises';
import { sleep } from '../../../base/clock.ts';
import { system, systemClock } from '../../../base/system.ts';
import { identify, isAlive, type ProcessIdentity } from '../../host/processes.ts';

/** Looks through all processes for the QEMU that has this uuid (or any) and works in this directory. */
export async function findGuestProcess(directory: string, uuid?: string): Promise<ProcessIdentity | null> {
  for (const entry of await readdir('/proc')) {
    if (!/^[0-9]+$/.test(entry) || !(await worksIn(Number(entry), directory))) continue;
    const candidate = await identify(Number(entry));
    const guest = { directory, ...(uuid === undefined ? {} : { uuid }) };
    if (candidate !== null && (await isGuestProcess(candidate, guest))) return candidate;
  }
  return null;
}

/** Looks through all processes for a QEMU that has this uuid, wherever it works: whoever started it. */
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

/** What becomes another program does so in microseconds of its own, which on a busy machine are milliseconds apart. */
const becomingMsMax = 1000;
const lookEveryMs = 2;

/** Empty: it has gone. One that is becoming another program has no words for a moment, between the tool that starts QEMU and QEMU. */
async function commandLineOf(candidate: ProcessIdentity): Promise<string> {
  const untilMs = systemClock.monotonicMs() + becomingMsMax;
  for (;;) {
    const commandLine = await readFile(`/proc/${candidate.pid}/cmdline`, 'utf8').catch(() => ''); // gone
    if (commandLine !== '' || !(await isAlive(candidate))) return commandLine;
    if (systemClock.monotonicMs() > untilMs) return '';
    await sleep(systemClock, lookEveryMs);
  }
}

/** SIGKILL to exactly this guest's process. False when it is not there any more. */
export async function killGuestProcess(
  candidate: ProcessIdentity,
  guest: { readonly directory: string; readonly uuid?: string },
): Promise<boolean> {
  return (await isGuestProcess(candidate, guest)) && system.signal(candidate.pid, 'SIGKILL');
}
