// `berth server ls`: the servers on the store of the one that answers, with their versions.

import { Command } from 'commander';
import type { ServerList } from '../api/upgrade/servers.ts';
import type { Cli } from '../cli/cli.ts';
import { attempting } from '../cli/exit-codes.ts';
import { type Column, type Format, printTable, printValue } from '../cli/print/output.ts';
import { outputOption } from '../cli/print/output-option.ts';
import { visible } from '../cli/print/terminal.ts';
import { openSession } from '../cli/session.ts';

interface Row {
  readonly server: ServerList['items'][number];
  readonly leads: boolean;
}

export function serverListCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show the servers of the fleet, and their versions')
    .addOption(outputOption('list'))
    .addHelpText(
      'after',
      '\nA server that ended without notice is shown for a week. One without a URL is reached only from its own machine.',
    )
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const list = await attempting('list the servers', () => client.servers());
      if (output === 'json' || output === 'yaml') return printValue(cli, output, list);
      const rows = list.items.map((server) => ({ server, leads: server.name === list.leader }));
      if (output === 'name')
        return void cli.stdout.write(rows.map(({ server }) => `${visible(server.name)}\n`).join(''));
      printTable(cli, columns, rows, output);
    });
}

const columns: readonly Column<Row>[] = [
  { header: 'SERVER', value: ({ server }) => server.name },
  { header: 'URL', value: ({ server }) => server.url ?? '(not announced)', importance: 'major' },
  { header: 'VERSION', value: ({ server }) => server.version ?? '(unknown)', importance: 'major' },
  { header: 'LEADS', value: ({ leads }) => (leads ? 'yes' : 'no') },
  { header: 'SINCE', value: ({ server }) => new Date(server.announcedAtMs).toISOString(), importance: 'minor' },
];
