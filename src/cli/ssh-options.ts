// What ssh and scp are told, so that they reach a guest through the control plane, with no route to its host.

import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import type { Cli } from './cli.ts';
import { contextFilePath } from './context-file.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { runningInstance } from './running-instance.ts';
import { openSession } from './session.ts';

export interface SshTarget {
  readonly name: string;
  readonly identity?: string;
  /** Of the guest's ssh server. */
  readonly port: string;
}

/** Throws what the API says when there is no such instance, or it has no guest that runs. */
export async function sshOptions(
  cli: Cli,
  command: Command,
  { name, identity, port }: SshTarget,
): Promise<readonly string[]> {
  const session = await openSession(cli, command);
  const { metadata, status } = await runningInstance(session, { name, attempt: `reach instance "${name}"` });
  const knownHosts = join(dirname(contextFilePath(cli)), 'known_hosts');
  await mkdir(dirname(knownHosts), { recursive: true, mode: 0o700 });
  const proxy = [...cli.self, ...globalWords(command), 'port-forward', '--stdio', metadata.id, port];
  const settings = {
    ProxyCommand: proxy.map(shellWord).join(' ').replaceAll('%', '%%'),
    // Each life of an instance is another machine, with keys of its own.
    HostKeyAlias: `${metadata.id}.${status.incarnation}`,
    UserKnownHostsFile: `"${knownHosts}"`,
    StrictHostKeyChecking: 'accept-new',
    CheckHostIP: 'no',
  };
  return [
    ...Object.entries(settings).flatMap(([setting, value]) => ['-o', `${setting}=${value}`]),
    ...(identity === undefined ? [] : ['-i', identity]),
  ];
}

/** Runs one of OpenSSH's programs on the user's terminal; its exit code. */
export async function runSsh(cli: Cli, program: 'ssh' | 'scp', words: readonly string[]): Promise<number> {
  try {
    return await cli.runProgram(program, words);
  } catch (cause) {
    throw new CommandError(exitCodes.internal, `cannot start ${program}`, {
      advice: 'install the package openssh-client',
      cause,
    });
  }
}

/** The user's choice of a server, for ourselves when ssh calls us. A token is not among them: it is in the environment or the context. */
function globalWords(command: Command): string[] {
  const flags = command.optsWithGlobals<Readonly<Record<string, unknown>>>();
  return ['context', 'url', 'project'].flatMap((flag) => {
    const value = flags[flag];
    return typeof value === 'string' ? [`--${flag}`, value] : [];
  });
}

/** A word that a shell reads as it is: ssh gives its ProxyCommand to one, and what is to run to another. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
