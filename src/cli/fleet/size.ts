// `berth size ...`: named amounts of resources.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';
import { kindViews } from '../kinds.ts';
import { type Format, printList } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { removeUsed } from './remove-used.ts';
import { openSession } from '../session.ts';
import { parseDiskGiB, parseInteger, parseMemoryMiB } from '../options/units.ts';

export function sizeCommand(cli: Cli): Command {
  return new Command('size')
    .description('Sizes: named amounts of resources')
    .addCommand(lsCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all sizes')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const { items } = await attempting('list sizes', () => listAll(client, 'size'));
      items.sort((a, b) => a.spec.cpus - b.spec.cpus || a.spec.memoryMiB - b.spec.memoryMiB);
      await printList(cli, output, {
        items,
        columns: kindViews.size({ nowMs: cli.clock.nowMs() }),
        empty: 'no sizes; create one: berth size create small --cpus 1 --memory 1GiB',
      });
    });
}

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Create a size')
    .argument('<name>')
    .requiredOption('--cpus <count>', 'virtual CPUs')
    .requiredOption('--memory <amount>', '512MiB, 1GiB')
    .option('--disk <amount>', '10GiB; default: as large as the image')
    .action(async (name: string, options: { cpus: string; memory: string; disk?: string }, command: Command) => {
      const spec = {
        cpus: parseInteger('--cpus', options.cpus, { min: 1, max: 1024 }),
        memoryMiB: parseMemoryMiB(options.memory),
        ...(options.disk === undefined ? {} : { diskGiB: parseDiskGiB(options.disk) }),
      };
      const { client } = await openSession(cli, command);
      await attempting(`create size "${name}"`, () => client.create('size', { metadata: { name }, spec }));
      cli.stdout.write(`size ${name} created\n`);
    });
}

function rmCommand(cli: Cli): Command {
  const command = new Command('rm').description('Remove sizes; instances keep their resources').argument('<size...>');
  return removeUsed(cli, command, {
    kind: 'size',
    word: 'size',
    advice: { NotFound: '"berth size ls" shows the sizes' },
  });
}
