// Removes the quickstart's guest, and checks that nothing of it is left on this machine.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Instance } from '../../api/resources/instance.ts';
import type { Cli } from '../../cli/cli.ts';
import { attempting, CommandError, exitCodes } from '../../cli/exit-codes.ts';
import { untilGone, waitForInstance } from '../../cli/instances/wait.ts';
import type { Stage } from './stage.ts';

const removedWithinMs = 60_000;

/** Deletes the guest and waits until the API, and the files and processes of this machine, no longer contain its id. */
export async function removeGuest(cli: Cli, { session, fleet }: Stage, { metadata }: Instance): Promise<void> {
  const calm: Cli = { ...cli, interruption: () => new AbortController().signal }; // even after Ctrl-C
  await attempting(`remove instance "${metadata.name}"`, () => session.client.delete('instance', metadata.id));
  await waitForInstance(calm, session, {
    id: metadata.id,
    name: metadata.name,
    judge: untilGone,
    timeoutMs: removedWithinMs,
  });
  const traces = [...(await filesOf(fleet.agentDirectory, metadata.id)), ...(await processesOf(metadata.id))];
  if (traces.length > 0) {
    throw new CommandError(
      exitCodes.badOutcome,
      `instance "${metadata.name}" is removed, but these remain: ${traces.join(', ')}`,
    );
  }
}

async function filesOf(directory: string, id: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter(({ name }) => name.includes(id)).map(({ parentPath, name }) => join(parentPath, name));
}

async function processesOf(id: string): Promise<string[]> {
  const numbers = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    numbers.map(async (pid) => {
      const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''); // it has ended in the meantime
      return commandLine.includes(id) ? [`process ${pid}`] : [];
    }),
  );
  return found.flat();
}
