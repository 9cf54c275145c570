// `berth ssh [USER@]NAME`: the user's own ssh, carried to the guest through the control plane.

import { Command } from 'commander';
import type { Cli } from './cli.ts';
import { CommandExit } from './exit-codes.ts';
import { runSsh, sshOptions } from './ssh-options.ts';

interface SshOptions {
  readonly identity?: string;
  readonly port: string;
}

export function sshCommand(cli: Cli): Command {
  return new Command('ssh')
    .description('Log in to an instance by ssh')
    .argument('<instance>', 'NAME or USER@NAME')
    .argument('[words...]', 'after --: what to run there')
    .option('-i, --identity <file>', 'your private key')
    .option('-p, --port <port>', 'where its ssh server listens', '22')
    .addHelpText(
      'after',
      '\nThe instance needs a public key of yours: berth run IMAGE --ssh-key ~/.ssh/id_ed25519.pub\nThe host key of a new instance is taken on trust the first time, and held to afterwards.',
    )
    .action(async (target: string, words: readonly string[], options: SshOptions, command: Command) => {
      const name = target.slice(target.lastIndexOf('@') + 1);
      const settings = await sshOptions(cli, command, { name, ...options });
      const code = await runSsh(cli, 'ssh', [...settings, target, ...(words.length === 0 ? [] : ['--', ...words])]);
      if (code !== 0) throw new CommandExit(code);
    });
}
