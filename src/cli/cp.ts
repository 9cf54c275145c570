// `berth cp FROM TO`: files to and from a guest, one side being NAME:PATH. The user's own scp does it, carried through the control plane.

import { Command } from 'commander';
import type { Cli } from './cli.ts';
import { CommandExit, usageError } from './exit-codes.ts';
import { runSsh, sshOptions } from './ssh-options.ts';

interface CpOptions {
  readonly recursive?: true;
  readonly identity?: string;
  readonly port: string;
}

export function cpCommand(cli: Cli): Command {
  return new Command('cp')
    .description('Copy files to or from an instance')
    .argument('<from>', 'a file here, or NAME:PATH, or USER@NAME:PATH')
    .argument('<to>', 'the same; one of both is in the instance')
    .option('-r, --recursive', 'whole directories')
    .option('-i, --identity <file>', 'your private key')
    .option('-p, --port <port>', 'where its ssh server listens', '22')
    .action(async (from: string, to: string, options: CpOptions, command: Command) => {
      const places = [from, to].map(placeOf);
      const [remote, second] = places.filter((place) => place.name !== undefined);
      if (remote?.name === undefined || second !== undefined)
        throw usageError('one of both must be in an instance: NAME:PATH', 'for a file here with a colon write ./a:b');
      const settings = await sshOptions(cli, command, { ...options, name: remote.name });
      const flags = options.recursive ? ['-r'] : [];
      const code = await runSsh(cli, 'scp', [...flags, ...settings, '--', ...places.map(({ word }) => word)]);
      if (code !== 0) throw new CommandExit(code);
    });
}

/** As scp reads it: a colon before any slash makes it remote. */
function placeOf(word: string): { readonly word: string; readonly name?: string } {
  const name = /^(?:[^/:@]+@)?([^/:@]+):/.exec(word)?.[1];
  if (name === undefined) return { word: word.startsWith('-') ? `./${word}` : word };
  return { word, name };
}
