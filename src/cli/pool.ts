// `berth pool ...`: named parts of the fleet.

import { Command } from 'commander';
import type { PoolSpec } from '../api/resources/pool.ts';
import { profileNames } from '../api/resources/profile.ts';
import type { Cli } from './cli.ts';
import { attempting } from './exit-codes.ts';
import { listAll } from './follow.ts';
import { parseWeights } from './host-options.ts';
import { kindViews } from './kinds.ts';
import { type Format, printList } from './output.ts';
import { outputOption } from './output-option.ts';
import { oneOf } from './place-options.ts';
import { forEachName, joined } from './rm.ts';
import { openSession } from './session.ts';
import { collect, parseInteger, parseMemoryMiB } from './units.ts';

export function poolCommand(cli: Cli): Command {
  return new Command('pool')
    .description('Pools: named parts of the fleet')
    .addCommand(lsCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all pools')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const { items } = await attempting('list pools', () => listAll(client, 'pool'));
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      await printList(cli, output, {
        items,
        columns: kindViews.pool({ nowMs: cli.clock.nowMs() }),
        empty: 'no pools; make one: berth pool create NAME',
      });
    });
}

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Make a pool; hosts join it by their own description')
    .argument('<name>')
    .option('--profile <profile>', `how its hosts are preferred: ${profileNames.join(', ')}`)
    .option('--weight <score=weight>', 'how much a score counts there; many times', collect, [])
    .option('--default-cpus <count>', 'for instances of this pool that nobody said it of')
    .option('--default-memory <amount>', 'likewise: 2GiB')
    .option('--description <text>', 'for people', '')
    .action(async (name: string, options: CreateOptions, command: Command) => {
      const spec = specOf(options);
      const { client } = await openSession(cli, command);
      await attempting(`create pool "${name}"`, () => client.create('pool', { metadata: { name }, spec }));
      cli.stdout.write(`pool ${name} created\n`);
    });
}

interface CreateOptions {
  readonly profile?: string;
  readonly weight: readonly string[];
  readonly defaultCpus?: string;
  readonly defaultMemory?: string;
  readonly description: string;
}

function specOf({ profile, weight, defaultCpus, defaultMemory, description }: CreateOptions): PoolSpec {
  const defaults = {
    ...(defaultCpus === undefined ? {} : { cpus: parseInteger('--default-cpus', defaultCpus, { min: 1, max: 1024 }) }),
    ...(defaultMemory === undefined ? {} : { memoryMiB: parseMemoryMiB(defaultMemory, '--default-memory') }),
  };
  return {
    description,
    ...(profile === undefined ? {} : { profile: oneOf('--profile', profile, profileNames) }),
    ...(weight.length === 0 ? {} : { weights: parseWeights(weight) }),
    ...(Object.keys(defaults).length === 0 ? {} : { defaults }),
  };
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove pools; their hosts stay')
    .argument('<pool...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove pool "${name}"`, () => client.delete('pool', name), {
          NotFound: '"berth pool ls" shows the pools',
        });
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
