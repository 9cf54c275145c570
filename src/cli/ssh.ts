// `berth ssh [USER@]NAME`: the user's own ssh, carried to the guest through the control plane.

import { Command } from 'commander';
import type { Cli } from './cli.ts';
import { CommandExit } from './exit-codes.ts';
import { runSsh, sshOptions } from './ssh-options.ts';

interface SshOptions {
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
      if (code === sshFailed) cli.stderr.write(hintOf(name, { target, ...options }));
      if (code !== 0) throw new CommandExit(code);
    });
}

/** ssh has said what went wrong, and not what may be done about it here. Nothing to add where both the user and the key were named. */
function hintOf(name: string, { target, identity }: { readonly target: string; readonly identity?: string }): string {
  const user = target.includes('@') ? [] : [`who you are there: berth ssh USER@${name} (debian, in images of Debian)`];
  const key = identity === undefined ? ['which key: -i FILE'] : [];
  const hints = [...user, ...key];
  return hints.length === 0 ? '' : `  if it refused you, say ${hints.join(', and ')}\n`;
}
