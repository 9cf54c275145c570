// `berth ssh [USER@]NAME`: the user's own ssh, forwarded to the guest through the control plane.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { CommandExit } from '../exit-codes.ts';
import { runSsh, type SshWay, sshOptions } from './ssh-options.ts';

interface SshOptions {
  readonly login?: string;
  readonly identity?: string;
  readonly port: string;
}

/** The exit code of ssh for its own errors; a command with the same code cannot be distinguished. */
const sshFailed = 255;

export function sshCommand(cli: Cli): Command {
  return new Command('ssh')
    .description('Log in to an instance by ssh')
    .argument('<instance>', 'NAME or USER@NAME')
    .argument('[words...]', 'after --: command to run there')
    .option('-l, --login <user>', "user to log in as; default: the image's default user")
    .option('-i, --identity <file>', 'your private key; default: the one in ~/.ssh whose public key the instance has')
    .option('-p, --port <port>', 'port of its ssh server', '22')
    .addHelpText(
      'after',
      '\nThe instance needs your public key: berth run IMAGE --ssh-key ~/.ssh/id_ed25519.pub\nThe host key of a new instance is trusted on the first connection, and checked on later ones.',
    )
    .action(async (target: string, words: readonly string[], options: SshOptions, command: Command) => {
      const way = await sshOptions(cli, command, { target, ...options });
      const code = await runSsh(cli, 'ssh', [...way.words, target, ...(words.length === 0 ? [] : ['--', ...words])]);
      if (code === sshFailed) cli.stderr.write(hintOf(way));
      if (code !== 0) throw new CommandExit(code);
    });
}

/** ssh reports what went wrong, but not what to do about it here. Empty when the user and the key were known. */
function hintOf({ user, keys, instance }: SshWay): string {
  const { name } = instance.metadata;
  const login = user === undefined ? [`the user: berth ssh -l USER ${name}`] : [];
  const key = keys.length === 0 ? ['the key: -i FILE'] : [];
  const hints = [...login, ...key];
  const none = instance.spec.sshKeys.length === 0 ? '  it was given no SSH key: berth run IMAGE --ssh-key FILE\n' : '';
  return hints.length === 0 ? '' : `${none}  if it refused the login, name ${hints.join(', and ')}\n`;
}
