// `berth inventory ...`: hosts of other systems.

import { Command } from 'commander';
import type { InventorySpec } from '../../api/resources/inventory.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { kindViews } from '../kinds.ts';
import { readTextFile } from '../options/read-file.ts';
import { parseInteger } from '../options/units.ts';
import { parseYaml } from '../options/yaml-file.ts';
import { listAll } from '../print/follow.ts';
import { type Format, printList, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { MockSource } from './mock-source.ts';

const advice = { NotFound: '"berth inventory ls" shows the inventories' } as const;
const fileBytesMax = 10 * 1024 * 1024;

export function inventoryCommand(cli: Cli): Command {
  return new Command('inventory')
    .description('Inventories: hosts of other systems, without agents, for tasks')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(rmCommand(cli))
    .addCommand(pushCommand(cli))
    .addCommand(confirmCommand(cli))
    .addCommand(mockCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all inventories')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const { items } = await attempting('list inventories', () => listAll(client, 'inventory'));
      await printList(cli, output, {
        items: items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name)),
        columns: kindViews.inventory({ nowMs: cli.clock.nowMs() }),
        empty: 'no inventories; create one: berth inventory create NAME --from URL',
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show one inventory')
    .argument('<name>')
    .addOption(outputOption('value'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const inventory = await attempting(`show inventory "${name}"`, () => client.get('inventory', name), advice);
      return printValue(cli, output === 'json' ? 'json' : 'yaml', inventory);
    });
}

interface CreateOptions {
  readonly from?: string;
  readonly pool?: string;
  readonly interval?: string;
  readonly lossMax?: string;
  readonly description: string;
}

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Take hosts from another system')
    .argument('<name>')
    .option('--from <url>', 'polled for the list of nodes; default: the list is pushed')
    .option('--pool <pool>', 'of nodes that name none')
    .option('--interval <seconds>', 'between two polls; default: 10')
    .option('--loss-max <percent>', 'a list that lacks more of the hosts must be confirmed; default: 20')
    .option('--description <text>', 'free text', '')
    .action(async (name: string, options: CreateOptions, command: Command) => {
      const { from: url, pool, interval, lossMax, description } = options;
      const seconds = interval === undefined ? undefined : parseInteger('--interval', interval, { min: 1, max: 3600 });
      const percent = lossMax === undefined ? undefined : parseInteger('--loss-max', lossMax, { min: 0, max: 100 });
      const spec: Partial<InventorySpec> = {
        description,
        source: url === undefined ? { kind: 'push' } : { kind: 'http', url },
        ...(pool === undefined ? {} : { pool }),
        ...(seconds === undefined ? {} : { intervalMs: seconds * 1000 }),
        ...(percent === undefined ? {} : { lossShareMax: percent / 100 }),
      };
      const { client } = await openSession(cli, command);
      await attempting(`create inventory "${name}"`, () => client.create('inventory', { metadata: { name }, spec }));
      cli.stdout.write(`inventory ${name} created\n`);
      if (url === undefined) cli.stderr.write(`send it a list: berth inventory push ${name} FILE\n`);
    });
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove inventories; their hosts follow, once nothing is held there')
    .argument('<inventory...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove inventory "${name}"`, () => client.delete('inventory', name), advice);
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

function pushCommand(cli: Cli): Command {
  return new Command('push')
    .description('Send the whole list of nodes')
    .argument('<name>')
    .argument('<file>', 'YAML or JSON: a list of nodes; "-": standard input')
    .action(async (name: string, file: string, _options: unknown, command: Command) => {
      const text = await readTextFile(cli, file, { what: 'the list of nodes', bytesMax: fileBytesMax });
      const nodes = await parseYaml(text, file);
      if (!Array.isArray(nodes)) throw usageError(`${file} is not a list of nodes`);
      const { client } = await openSession(cli, command);
      const { state, message } = await attempting(
        `send the nodes of inventory "${name}"`,
        () => client.pushNodes(name, nodes),
        advice,
      );
      cli.stdout.write(`${state}: ${message}\n`);
    });
}

function confirmCommand(cli: Cli): Command {
  return new Command('confirm')
    .description('Confirm the loss of hosts that are missing from a list')
    .argument('<name>')
    .argument('<hash>', 'of the loss: berth inventory show NAME')
    .action(async (name: string, hash: string, _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      await attempting(`confirm the loss of inventory "${name}"`, () => client.confirmInventory(name, hash), advice);
      cli.stdout.write(`${name}: the loss ${hash} is confirmed; the next list is applied\n`);
    });
}

interface MockOptions {
  readonly hosts: string;
  readonly port: string;
  readonly pool: string;
  readonly vary?: string;
}

function mockCommand(cli: Cli): Command {
  return new Command('mock')
    .description('Serve a list of nodes on loopback until Ctrl-C, to try inventories')
    .option('--hosts <count>', 'how many nodes', '50')
    .option('--port <port>', '0: any free one', '8099')
    .option('--pool <pool>', 'of all nodes', 'metal')
    .option('--vary <seconds>', 'change the load of one node in four this often; default: never')
    .action(async ({ hosts, port, pool, vary }: MockOptions) => {
      const seconds = vary === undefined ? undefined : parseInteger('--vary', vary, { min: 1, max: 3_600 });
      const beganMs = cli.clock.monotonicMs();
      const source = await MockSource.open({
        hosts: parseInteger('--hosts', hosts, { min: 0, max: 100_000 }),
        port: parseInteger('--port', port, { min: 0, max: 65_535 }),
        pool,
        ...(seconds === undefined
          ? {}
          : { turn: () => Math.floor((cli.clock.monotonicMs() - beganMs) / (seconds * 1_000)) }),
      });
      const interruption = cli.interruption();
      cli.stdout.write(`${source.url}\n`);
      if (!interruption.aborted)
        await new Promise<void>((resolve) => interruption.addEventListener('abort', () => resolve(), { once: true }));
      await source.close();
    });
}
