// `berth version`: the versions of this program and, when it responds, of the server.

import { Command } from 'commander';
import type { Cli } from './cli.ts';
import { type Format, printValue } from './print/output.ts';
import { outputOption } from './print/output-option.ts';
import { openSession } from './session.ts';

export function versionCommand(cli: Cli): Command {
  return new Command('version')
    .description('Show the versions of this program and of the server')
    .addOption(outputOption('value'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const server = await serverVersion(cli, command);
      if (output === 'json' || output === 'yaml')
        return printValue(cli, output, { client: cli.version, server: server ?? null });
      cli.stdout.write(`berth   ${cli.version}\nserver  ${server ?? 'does not answer'}\n`);
    });
}

async function serverVersion(cli: Cli, command: Command): Promise<string | undefined> {
  try {
    const { client } = await openSession(cli, command);
    const { version } = await client.json<{ version?: unknown }>('/v1/version');
    return typeof version === 'string' ? version : undefined;
  } catch {
    return undefined; // this command works without a server
  }
}
