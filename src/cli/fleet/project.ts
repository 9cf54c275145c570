// `berth project ...`: tenants and their quotas.

import { Command } from 'commander';
import type { ProjectSpec } from '../../api/resources/project.ts';
import type { ProjectUsage } from '../../api/usage.ts';
import type { UserClient } from '../../api/client/user-client.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';
import { kindViews } from '../kinds.ts';
import { type Format, fieldLines, printList, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { replace } from '../replace.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { openSession } from '../session.ts';
import { parseClassAmount } from '../options/class-amounts.ts';
import { collect, parseInteger } from '../options/units.ts';

interface ProjectOptions {
  readonly weight?: string;
  readonly quota: readonly string[];
  readonly guarantee: readonly string[];
  readonly priorityMax?: string;
  readonly pool: readonly string[];
  readonly description?: string;
}

export function projectCommand(cli: Cli): Command {
  return new Command('project')
    .description('Projects: tenants, their weights and their limits')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(setCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all projects that have weights or limits of their own')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const { items } = await attempting('list projects', () => listAll(client, 'project'));
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      const chargedByProject = new Map<string, ProjectUsage['charged']>();
      if (output === 'table' || output === 'wide') {
        const limited = items.filter(({ spec }) => spec.quota !== undefined);
        for (const { metadata } of limited)
          chargedByProject.set(metadata.name, (await usageOf(client, metadata.name)).charged);
      }
      await printList(cli, output, {
        items,
        columns: kindViews.project({ nowMs: cli.clock.nowMs(), chargedByProject }),
        empty: 'no project has its own weights or limits; set some: berth project create NAME --weight 2',
      });
    });
}

function usageOf(client: UserClient, name: string): Promise<ProjectUsage> {
  return attempting(`show what project "${name}" uses`, () => client.projectUsage(name));
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show the limits of one project, and the total that its instances request')
    .argument('<project>')
    .addOption(outputOption('value'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const project = await attempting(`show project "${name}"`, () => client.get('project', name), {
        NotFound: '"berth project ls" shows those with weights or limits; any other has weight 1 and no limits',
      });
      const { charged } = await usageOf(client, name);
      if (output === 'json' || output === 'yaml') return printValue(cli, output, { ...project, charged });
      const { weight, quota = {}, guarantee = {}, priorityMax, pools, description } = project.spec;
      const used = Object.entries(charged).filter(([resourceClass]) => quota[resourceClass] === undefined);
      const lines = fieldLines([
        ['name', name],
        ['description', description || undefined],
        ['weight', String(weight)],
        ['priority', priorityMax === undefined ? undefined : `${priorityMax} at most`],
        ['pools', pools && `${pools.join(', ')} only`],
        ...Object.entries(quota).map(([resourceClass, most]): [string, string] => [
          'quota',
          `${resourceClass}  ${charged[resourceClass] ?? 0} of ${most}`,
        ]),
        ...used.map(([resourceClass, amount]): [string, string] => ['used', `${resourceClass}  ${amount}, no quota`]),
        ...Object.entries(guarantee).map(([resourceClass, least]): [string, string] => [
          'guarantee',
          `${resourceClass}  ${least}`,
        ]),
      ]);
      cli.stdout.write(`${lines.join('\n')}\n`);
    });
}

function withOptions(command: Command): Command {
  return command
    .argument('<name>')
    .option('--weight <number>', 'fair share, relative to other projects; default: 1')
    .option(
      '--quota <class=amount>',
      'limit of all its instances together: cpus=64, memory=64GiB, disk=1TiB, instances=20 or a resource class: VCPU=64; may be repeated',
      collect,
      [],
    )
    .option('--guarantee <class=amount>', 'never preempted for higher priorities; may be repeated', collect, [])
    .option('--priority-max <number>', 'highest priority of its instances')
    .option('--pool <name>', 'use only this pool; "" for any; may be repeated', collect, [])
    .option('--description <text>', 'free text');
}

function createCommand(cli: Cli): Command {
  return withOptions(new Command('create').description("Set a project's weights or limits")).action(
    async (name: string, options: ProjectOptions, command: Command) => {
      const spec = changed({ description: '', weight: 1 }, options);
      const { client } = await openSession(cli, command);
      await attempting(`create project "${name}"`, () => client.create('project', { metadata: { name }, spec }));
      cli.stdout.write(`project ${name} created\n`);
    },
  );
}

function setCommand(cli: Cli): Command {
  return withOptions(
    new Command('set').description("Change a project's weights or limits; cpus= removes a limit"),
  ).action(async (name: string, options: ProjectOptions, command: Command) => {
    const { client } = await openSession(cli, command);
    await attempting(
      `change project "${name}"`,
      () => replace(client, { kind: 'project', name, change: ({ spec }) => changed(spec, options) }),
      { NotFound: 'create it first: berth project create NAME' },
    );
    cli.stdout.write(`project ${name} changed\n`);
  });
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove weights and limits; instances stay')
    .argument('<project...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove project "${name}"`, () => client.delete('project', name), {
          NotFound: '"berth project ls" shows the projects',
        });
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

function changed({ pools: before, ...spec }: ProjectSpec, options: ProjectOptions): ProjectSpec {
  const { weight, quota, guarantee, priorityMax, description } = options;
  const pools = options.pool.length === 0 ? before : poolsOf(options.pool);
  return {
    ...spec,
    ...(weight === undefined ? {} : { weight: parseWeight(weight) }),
    ...(quota.length === 0 ? {} : { quota: amountsOf('--quota', spec.quota, quota) }),
    ...(guarantee.length === 0 ? {} : { guarantee: amountsOf('--guarantee', spec.guarantee, guarantee) }),
    ...(priorityMax === undefined
      ? {}
      : { priorityMax: parseInteger('--priority-max', priorityMax, { min: -1000, max: 1000 }) }),
    ...(pools === undefined ? {} : { pools }),
    ...(description === undefined ? {} : { description }),
  };
}

/** Undefined: any pool. */
function poolsOf(names: readonly string[]): string[] | undefined {
  if (!names.includes('')) return [...new Set(names)];
  if (names.length === 1) return undefined;
  throw usageError('--pool cannot be empty beside others', 'name the pools, or give --pool "" alone for any pool');
}

function parseWeight(text: string): number {
  const weight = Number(text);
  if (!/^\d{1,4}(\.\d{1,2})?$/.test(text) || weight < 0.01 || weight > 1000)
    throw usageError(`--weight cannot be "${text}"`, 'write a number from 0.01 to 1000');
  return weight;
}

function amountsOf(flag: string, before: ProjectSpec['quota'], pairs: readonly string[]): Record<string, number> {
  const amounts: Record<string, number> = { ...before };
  for (const pair of pairs) {
    const { resourceClass, amount } = parseClassAmount(flag, pair);
    if (amount === undefined) delete amounts[resourceClass];
    else amounts[resourceClass] = amount;
  }
  return amounts;
}
