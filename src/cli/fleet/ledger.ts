// `berth ledger`: providers of resources and who holds what of them, as the Placement API shows them: hosts and their parts, and the
// providers and consumers of other systems.

import { Command } from 'commander';
import type { UserClient } from '../../api/client/user-client.ts';
import type { LedgerProvider } from '../../api/usage.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { type Column, coloursFor, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { openSession } from '../session.ts';

export function ledgerCommand(cli: Cli): Command {
  const command = new Command('ledger').description(
    'Show resource providers and their consumers, including those of other systems',
  );
  command
    .command('ls')
    .description('List the providers of resources')
    .addOption(outputOption('value'))
    .action(async ({ output }: { readonly output: Format }, called: Command) => {
      const { client } = await openSession(cli, called);
      const providers = await attempting('list providers', () => listProviders(client));
      if (output === 'json' || output === 'yaml') return printValue(cli, output, providers);
      const colours = coloursFor(cli.stdout, cli.environment);
      cli.stdout.write(`${tableLines(providerColumns, providers, { colours }).join('\n')}\n`);
    });
  command
    .command('show <provider>')
    .description('Show what a provider has, and who holds it; the provider by name or UUID')
    .addOption(outputOption('value'))
    .action(async (name: string, { output }: { readonly output: Format }, called: Command) => {
      const { client } = await openSession(cli, called);
      const shown = await attempting(`show provider "${name}"`, () => client.ledgerProvider(name), advice);
      if (output === 'json' || output === 'yaml') return printValue(cli, output, shown);
      const colours = coloursFor(cli.stdout, cli.environment);
      const { uuid, generation, inventories, allocations } = shown;
      const lines = [
        visible(`${shown.name} (${uuid}), generation ${generation}`),
        '',
        ...tableLines(inventoryColumns, Object.entries(inventories), { colours }),
        '',
        ...tableLines(allocationColumns, allocations, { colours }),
      ];
      cli.stdout.write(`${lines.join('\n')}\n`);
    });
  return command;
}

interface Provider {
  readonly uuid: string;
  readonly name: string;
  readonly generation: number;
  readonly parent_provider_uuid: string | null;
}

const advice = { NotFound: '"berth ledger ls" lists the providers' } as const;

const version = { 'openstack-api-version': 'placement 1.39' };

async function listProviders(client: UserClient): Promise<readonly Provider[]> {
  const found = await client.json<{ resource_providers: Provider[] }>('/placement/resource_providers', {
    headers: version,
  }); // as docs/placement-api.md says
  return found.resource_providers.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

const providerColumns: readonly Column<Provider>[] = [
  { header: 'NAME', value: ({ name }) => name },
  { header: 'UUID', value: ({ uuid }) => uuid },
  { header: 'PARENT', value: ({ parent_provider_uuid: parent }) => parent ?? '' },
  { header: 'GENERATION', value: ({ generation }) => String(generation), right: true },
];

const inventoryColumns: readonly Column<[string, LedgerProvider['inventories'][string]]>[] = [
  { header: 'CLASS', value: ([resourceClass]) => resourceClass },
  { header: 'TOTAL', value: ([, { total }]) => String(total), right: true },
  { header: 'RESERVED', value: ([, { reserved }]) => String(reserved), right: true },
  { header: 'RATIO', value: ([, { allocationRatio }]) => String(allocationRatio), right: true },
  { header: 'USED', value: ([, { used }]) => String(used), right: true },
];

const allocationColumns: readonly Column<LedgerProvider['allocations'][number]>[] = [
  { header: 'CONSUMER', value: ({ consumer }) => consumer },
  { header: 'TYPE', value: ({ type = 'unknown' }) => type },
  { header: 'PROJECT', value: ({ project }) => project },
  {
    header: 'HOLDS',
    value: ({ amounts }) =>
      Object.entries(amounts)
        .map(([name, amount]) => `${amount} ${name}`)
        .join(', '),
  },
];
