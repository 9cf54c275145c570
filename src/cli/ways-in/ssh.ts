// `berth ssh [USER@]NAME`: the user's own ssh, carried to the guest through the control plane.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { CommandExit } from '../exit-codes.ts';
import { runSsh, type SshWay, sshOptions } from './ssh-options.ts';

interface SshOptions {
  readonly login?: string;
  readonly identity?: string;
  readonly port: string;
}

/** Of ssh itself; a command that ends so cannot be told from it. */
const sshFailed = 255;

export function sshCommand(cli: Cli): Command {
  return new Command('ssh')
    .description('Log in to an instance by ssh')
    .argument('<instance>', 'NAME or USER@NAME')
    .argument('[words...]', 'after --: what to run there')
    .option('-l, --login <user>', "who you are there; default: the image's default user")
    .option('-i, --identity <file>', 'your private key; default: the one in ~/.ssh that the instance was given')
    .option('-p, --port <port>', 'where its ssh server listens', '22')
    .addHelpText(
      'after',
      '\nThe instance needs a public key of yours: berth run IMAGE --ssh-key ~/.ssh/id_ed25519.pub\nThe host key of a new instance is taken on trust the first time, and held to afterwards.',
    )
    .action(async (target: string, words: readonly string[], options: SshOptions, command: Command) => {
      const way = await sshOptions(cli, command, { target, ...options });
      const code = await runSsh(cli, 'ssh', [...way.words, target, ...(words.length === 0 ? [] : ['--', ...words])]);
      if (code === sshFailed) cli.stderr.write(hintOf(way));
      if (code !== 0) throw new CommandExit(code);
    });
}

/** ssh has said what went wrong, and not what may be done about it here. Nothing to add where the user and the key were known. */
function hintOf({ user, keys, instance }: SshWay): string {
  const { name } = instance.metadata;
  const login = user === undefined ? [`who you are there: berth ssh -l USER ${name}`] : [];
  const key = keys.length === 0 ? ['which key: -i FILE'] : [];
  const hints = [...login, ...key];
  const none = instance.spec.sshKeys.length === 0 ? '  it was given no SSH key: berth run IMAGE --ssh-key FILE\n' : '';
  return hints.length === 0 ? '' : `${none}  if it refused you, say ${hints.join(', and ')}\n`;
}
