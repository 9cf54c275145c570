// `berth host token NAME`: prints the token for a host's agent. The control plane creates it; on the server's machine
// the server's secret suffices, even while the server is down.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { attempting, CommandError, exitCodes, usageError } from '../cli/exit-codes.ts';
import { knowsServer, openSession } from '../cli/session.ts';

const hostName = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const usualDirectory = '/var/lib/berth/server';

export function hostTokenCommand(cli: Cli): Command {
  return new Command('token')
    .description("Print the token for a host's agent")
    .argument('<name>', 'name of the host; it need not exist yet')
    .option(
      '--data-dir <directory>',
      `the server's, to make the token without asking the server; default: BERTH_SERVER_DATA_DIRECTORY, or where no server is known ${usualDirectory}`,
    )
    .action(async (name: string, { dataDir }: { dataDir?: string }, command: Command) => {
      if (!hostName.test(name))
        throw usageError(
          `a host cannot be called "${name}"`,
          'use lower-case letters, digits and "-", at most 63 of them, with a letter or digit first and last',
        );
      const named = dataDir ?? (cli.environment['BERTH_SERVER_DATA_DIRECTORY'] || undefined);
      const directory = named ?? ((await knowsServer(cli, command)) ? undefined : usualDirectory);
      const token = directory === undefined ? await askFor(cli, command, name) : await make(directory, name);
      cli.stdout.write(`${token}\n`);
      if (directory !== undefined)
        cli.stderr.write(
          `berth: this token is refused if a host "${name}" was removed before; a server that is asked makes one that is not\n`,
        );
    });
}

async function askFor(cli: Cli, command: Command, name: string): Promise<string> {
  const { client } = await openSession(cli, command);
  const { token } = await attempting(`get a token for host "${name}"`, () => client.hostToken(name), {
    NotFound: "this server is too old to be asked; on the server's machine: berth host token NAME --data-dir DIRECTORY",
  });
  return token;
}

async function make(directory: string, name: string): Promise<string> {
  const { hostTokenOf } = await import('../server/http/tokens.ts');
  return hostTokenOf(await readSecret(directory, name), name, 0);
}

async function readSecret(directory: string, name: string): Promise<Uint8Array> {
  const path = join(directory, 'secret');
  try {
    return Buffer.from((await readFile(path, 'utf8')).trim(), 'base64url');
  } catch (cause) {
    throw new CommandError(exitCodes.usage, `cannot make a token for host "${name}": ${path} cannot be read`, {
      advice:
        "name a server to ask (--url, --context, BERTH_URL); or run this on the server's machine, as its user, with --data-dir when the server has one (berth dev: .berth/dev/server, berth quickstart: .berth/quickstart/server); the server must have started once",
      cause,
    });
  }
}
