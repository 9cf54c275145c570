// `berth host token NAME`: the token that a host's agent needs. Made from the server's secret, so it works where the server's data is.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { CommandError, exitCodes, usageError } from '../cli/exit-codes.ts';

const hostName = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export function hostTokenCommand(cli: Cli): Command {
  return new Command('token')
    .description("Print the token for a host's agent; on the server's machine")
    .argument('<name>', 'of the host; it need not exist yet')
    .option('--data-dir <directory>', "the server's; default: BERTH_SERVER_DATA_DIRECTORY, else /var/lib/berth/server")
    .action(async (name: string, { dataDir }: { dataDir?: string }) => {
      if (!hostName.test(name))
        throw usageError(`a host cannot be called "${name}"`, 'use lower-case letters, digits and "-"');
      const directory = dataDir ?? (cli.environment['BERTH_SERVER_DATA_DIRECTORY'] || '/var/lib/berth/server');
      const { hostTokenOf } = await import('../server/http/tokens.ts');
      cli.stdout.write(`${hostTokenOf(await readSecret(directory, name), name)}\n`);
    });
}

async function readSecret(directory: string, name: string): Promise<Uint8Array> {
  const path = join(directory, 'secret');
  try {
    return Buffer.from((await readFile(path, 'utf8')).trim(), 'base64url');
  } catch (cause) {
    throw new CommandError(exitCodes.usage, `cannot make a token for host "${name}": ${path} cannot be read`, {
      advice:
        "run this on the server's machine, as its user, with --data-dir when the server has one (berth dev: .berth/dev/server, berth quickstart: .berth/quickstart/server); the server must have started once",
      cause,
    });
  }
}
