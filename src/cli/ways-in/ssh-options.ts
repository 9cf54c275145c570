// The options for ssh and scp to reach a guest through the control plane, without a route to its host.

import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import type { Instance } from '../../api/resources/instance.ts';
import type { Cli } from '../cli.ts';
import { contextFilePath } from '../context-file.ts';
import { defaultUserOf } from './default-user.ts';
import { CommandError, exitCodes, usageError } from '../exit-codes.ts';
import { privateKeysFor } from './own-keys.ts';
import { runningInstance } from './running-instance.ts';
import { shellWord } from '../print/shell-word.ts';
import { openSession } from '../session.ts';

export interface SshTarget {
  /** NAME or USER@NAME. */
  readonly target: string;
  /** Replaces the image's default user. */
  readonly login?: string;
  /** Replaces the keys in ~/.ssh that the instance was created with. */
  readonly identity?: string;
  /** Of the guest's ssh server. */
  readonly port: string;
}

export interface SshWay {
  /** Options of ssh and scp. */
  readonly words: readonly string[];
  /** Undefined: ssh decides. */
  readonly user: string | undefined;
  readonly keys: readonly string[];
  readonly instance: Instance;
}

/** Throws the API's error when there is no such instance, or an error that its guest does not run. */
export async function sshOptions(
  cli: Cli,
  command: Command,
  { target, login, identity, port }: SshTarget,
): Promise<SshWay> {
  const { user: named, name } = partsOf(target);
  if (named !== undefined && login !== undefined)
    throw usageError(`the user is named twice: "${named}" and "${login}"`, 'leave out USER@, or --login');
  const session = await openSession(cli, command);
  const instance = await runningInstance(session, { name, attempt: `reach instance "${name}"` });
  const { metadata, status } = instance;
  const user = named ?? login ?? (await defaultUserOf(session, instance));
  const keys =
    identity === undefined ? await privateKeysFor(join(cli.homeDirectory, '.ssh'), instance.spec.sshKeys) : [identity];
  const knownHosts = join(dirname(contextFilePath(cli)), 'known_hosts');
  await mkdir(dirname(knownHosts), { recursive: true, mode: 0o700 });
  const proxy = [...cli.self, ...globalWords(command), 'port-forward', '--stdio', metadata.id, port];
  const settings = {
    // ssh runs it in a shell.
    ProxyCommand: proxy.map(shellWord).join(' ').replaceAll('%', '%%'),
    // Each incarnation of an instance is a different machine with its own host keys.
    HostKeyAlias: `${metadata.id}.${status.incarnation}`,
    UserKnownHostsFile: `"${knownHosts}"`,
    StrictHostKeyChecking: 'accept-new',
    CheckHostIP: 'no',
    ...(named !== undefined || user === undefined ? {} : { User: user }),
  };
  const words = Object.entries(settings).flatMap(([setting, value]) => ['-o', `${setting}=${value}`]);
  return { words: [...words, ...keys.flatMap((key) => ['-i', key])], user, keys, instance };
}

/** Splits NAME or USER@NAME; a user may contain an @. */
export function partsOf(target: string): { readonly name: string; readonly user: string | undefined } {
  const cut = target.lastIndexOf('@');
  return { name: target.slice(cut + 1), user: cut < 0 ? undefined : target.slice(0, cut) };
}

/** Runs one of OpenSSH's programs on the user's terminal; returns its exit code. */
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

/**
 * The user's choice of a server, for the ProxyCommand. Tokens are not included: they are in the environment or the
 * context.
 */
function globalWords(command: Command): string[] {
  const flags = command.optsWithGlobals<Readonly<Record<string, unknown>>>();
  return ['context', 'url', 'project'].flatMap((flag) => {
    const value = flags[flag];
    return typeof value === 'string' ? [`--${flag}`, value] : [];
  });
}
