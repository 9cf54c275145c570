// Namespaces for the programs of an image build: what they mount and what they start is gone with them, however they end. And a broom for what
// builds without such namespaces left mounted.

import { execFile } from 'node:child_process';
import { readFile, realpath } from 'node:fs/promises';
import { sep } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Each becomes the next one; the first process of the new namespace is the program, and its end ends all others there. */
const withAgent = ['setpriv', '--pdeathsig', 'KILL', '--'];
const ownProcesses = ['--pid', '--fork', '--kill-child=KILL', '--mount-proc'];
const jails: readonly (readonly string[])[] = [
  [...withAgent, 'unshare', '--mount', ...ownProcesses, '--'],
  // In a chroot, whose root is no mount point: its mounts stay as they are shared, and only /proc is its own.
  [...withAgent, 'unshare', '--mount', '--propagation', 'unchanged', ...ownProcesses, '--'],
  // In a container that may mount no /proc: without one of its own, a program does not find itself there.
  [...withAgent, 'unshare', '--mount', '--'],
  withAgent,
];

/** syslinux, for one, opens what it holds as /proc/PID/fd/N: the shell must be in /proc under its own number. */
const findsItself = ['sh', '-c', 'read -r pid rest < /proc/self/stat && [ "$pid" = $$ ]'];

/** What comes before a program and its arguments; nothing where there are no namespaces, as for builds of other users than root. */
export async function chooseBuildJail(): Promise<readonly string[]> {
  for (const jail of jails) if (await works(jail)) return jail;
  return [];
}

async function works([program, ...words]: readonly string[]): Promise<boolean> {
  if (program === undefined) return false;
  return run(program, [...words, ...findsItself], { timeout: 10_000 }).then(
    () => true,
    () => false, // it is not there, or not allowed
  );
}

/** Unmounts all that is mounted below a folder, busy or not. Throws what `umount` says. */
export async function unmountBelow(directory: string): Promise<void> {
  const inside = `${await realpath(directory)}${sep}`;
  const mounts = await mountPoints();
  // What was mounted last may lie upon the others.
  for (const path of mounts.filter((each) => each.startsWith(inside)).reverse())
    await run('umount', ['--lazy', '--', path]);
}

async function mountPoints(): Promise<string[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''); // not on Linux: nothing was mounted
  return text
    .split('\n')
    .flatMap((line) => line.split(' ').slice(4, 5))
    .map((path) =>
      path.replaceAll(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))),
    );
}
