// `berth host join-token ...`: tokens with which machines become hosts.

import { Command } from 'commander';
import type { JoinToken, JoinTokenList, NewJoinToken } from '../../api/joining.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { age, collect, parseDurationMs, parseLabels } from '../options/units.ts';
import { type Format, printList, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';

export function joinTokenCommand(cli: Cli): Command {
  return new Command('join-token')
    .description('Join tokens: machines become hosts with them')
    .addCommand(createCommand(cli))
    .addCommand(lsCommand(cli))
    .addCommand(rmCommand(cli));
}

interface CreateFlags {
  readonly pool?: string;
  readonly label: readonly string[];
  readonly expires: string;
  readonly uses: string;
  readonly output?: Format;
}

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Create a token; it is shown only once')
    .option('--pool <pool>', 'pool of the hosts that join with it')
    .option('-l, --label <key=value>', 'label of the hosts that join with it; may be repeated', collect, [])
    .option('--expires <duration>', 'how long machines may join with it: 30m, 1h, 168h', '1h')
    .option('--uses <count>', 'how many machines may join with it', '1')
    .addOption(outputOption('value'))
    .action(async ({ pool, label, expires, uses, output }: CreateFlags, command: Command) => {
      const { client, servers } = await openSession(cli, command);
      const body = {
        ...(pool === undefined ? {} : { pool }),
        labels: parseLabels('--label', label),
        expiresInMs: parseDurationMs('--expires', expires),
        uses: Number(uses),
      };
      const made = await attempting('create a join token', () =>
        client.json<NewJoinToken>('/v1/join-tokens', { method: 'POST', body }),
      );
      if (output === 'json' || output === 'yaml') return printValue(cli, output, made);
      cli.stdout.write(`${made.token}\n`);
      cli.stderr.write(`on the new host: berth agent join ${servers.current} TOKEN\n`);
    });
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show join tokens and the hosts that used them')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const { items } = await attempting('list join tokens', () => client.json<JoinTokenList>('/v1/join-tokens'));
      const nowMs = cli.clock.nowMs();
      await printList(cli, output, {
        items: items.map((item) => ({ ...item, metadata: { name: item.id } })),
        columns: [
          { header: 'ID', importance: 'major', value: ({ id }) => id },
          { header: 'POOL', value: ({ pool }) => pool ?? '' },
          { header: 'USES', value: ({ usedBy, uses }) => `${usedBy.length}/${uses}` },
          { header: 'EXPIRES', value: (token) => expiryOf(token, nowMs) },
          { header: 'HOSTS', value: ({ usedBy }) => usedBy.join(',') },
        ],
        empty: 'no join tokens; "berth host join-token create" makes one',
      });
    });
}

function expiryOf({ expiresAtMs }: JoinToken, nowMs: number): string {
  return expiresAtMs <= nowMs ? 'expired' : `in ${age(expiresAtMs - nowMs)}`;
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove join tokens; hosts that have joined with them stay')
    .argument('<id...>')
    .action(async (ids: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, ids, async (id) => {
        await attempting(`remove join token "${id}"`, () =>
          client.json(`/v1/join-tokens/${encodeURIComponent(id)}`, { method: 'DELETE' }),
        );
        cli.stdout.write(`${id} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, ids.length);
    });
}
