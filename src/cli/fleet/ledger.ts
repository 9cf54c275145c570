// `berth ledger`: providers of resources and who holds what of them, as the Placement API shows them: hosts and their parts, and the
// providers and consumers of other systems.

import { Command } from 'commander';
import type { UserClient } from '../../api/client/user-client.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { type Column, coloursFor, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
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
      const shown = await attempting(`show provider "${name}"`, () => showProvider(client, name));
      if (output === 'json' || output === 'yaml') return printValue(cli, output, shown);
      const colours = coloursFor(cli.stdout, cli.environment);
      const { provider, inventories, allocations } = shown;
      const lines = [
        `${provider.name} (${provider.uuid}), generation ${provider.generation}`,
        '',
        ...tableLines(inventoryColumns, inventories, { colours }),
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

interface Inventory {
  readonly resourceClass: string;
  readonly total: number;
  readonly reserved: number;
  readonly ratio: number;
  readonly used: number;
}

interface Allocation {
  readonly consumer: string;
  readonly type: string;
  readonly project: string;
  readonly resources: Readonly<Record<string, number>>;
}

const version = { 'openstack-api-version': 'placement 1.39' };

/** A part of the Placement API, which has no types of ours. */
async function ask<T>(client: UserClient, path: string, query: Readonly<Record<string, string>> = {}): Promise<T> {
  return (await client.json(`/placement${path}`, { headers: version, query })) as T; // as docs/placement-api.md says
}

async function listProviders(client: UserClient): Promise<readonly Provider[]> {
  const found = await ask<{ resource_providers: Provider[] }>(client, '/resource_providers');
  return found.resource_providers.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

interface Shown {
  readonly provider: Provider;
  readonly inventories: readonly Inventory[];
  readonly allocations: readonly Allocation[];
}

async function showProvider(client: UserClient, name: string): Promise<Shown> {
  const isUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name);
  const found = await ask<{ resource_providers: Provider[] }>(client, '/resource_providers', {
    [isUuid ? 'uuid' : 'name']: name,
  });
  const [provider] = found.resource_providers;
  if (!provider) throw usageError(`there is no provider "${name}"`, 'list them with "berth ledger ls"');
  const at = `/resource_providers/${provider.uuid}`;
  const { inventories } = await ask<{
    inventories: Record<string, { total: number; reserved: number; allocation_ratio: number }>;
  }>(client, `${at}/inventories`);
  const { usages } = await ask<{ usages: Record<string, number> }>(client, `${at}/usages`);
  const { allocations } = await ask<{ allocations: Record<string, { resources: Record<string, number> }> }>(
    client,
    `${at}/allocations`,
  );
  const holders: Allocation[] = [];
  for (const [consumer, { resources }] of Object.entries(allocations)) {
    const known = await ask<{ project_id?: string; consumer_type?: string }>(client, `/allocations/${consumer}`);
    holders.push({ consumer, type: known.consumer_type ?? '', project: known.project_id ?? '', resources });
  }
  return {
    provider,
    inventories: Object.entries(inventories).map(([resourceClass, { total, reserved, allocation_ratio: ratio }]) => ({
      resourceClass,
      ...{ total, reserved, ratio, used: usages[resourceClass] ?? 0 },
    })),
    allocations: holders,
  };
}

const providerColumns: readonly Column<Provider>[] = [
  { header: 'NAME', value: ({ name }) => name },
  { header: 'UUID', value: ({ uuid }) => uuid },
  { header: 'PARENT', value: ({ parent_provider_uuid: parent }) => parent ?? '' },
  { header: 'GENERATION', value: ({ generation }) => String(generation), right: true },
];

const inventoryColumns: readonly Column<Inventory>[] = [
  { header: 'CLASS', value: ({ resourceClass }) => resourceClass },
  { header: 'TOTAL', value: ({ total }) => String(total), right: true },
  { header: 'RESERVED', value: ({ reserved }) => String(reserved), right: true },
  { header: 'RATIO', value: ({ ratio }) => String(ratio), right: true },
  { header: 'USED', value: ({ used }) => String(used), right: true },
];

const allocationColumns: readonly Column<Allocation>[] = [
  { header: 'CONSUMER', value: ({ consumer }) => consumer },
  { header: 'TYPE', value: ({ type }) => type },
  { header: 'PROJECT', value: ({ project }) => project },
  {
    header: 'HOLDS',
    value: ({ resources }) =>
      Object.entries(resources)
        .map(([name, amount]) => `${amount} ${name}`)
        .join(', '),
  },
];
