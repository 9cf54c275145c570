// `berth pool ...`: named parts of the fleet.

import { Command } from 'commander';
import { OnHostLoss, onHostLossHelp } from '../../api/resources/host-state.ts';
import type { PoolSpec } from '../../api/resources/pool.ts';
import type { UserClient } from '../../api/client/user-client.ts';
import { profileNames } from '../../api/resources/profile.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';
import { parseWeights } from '../options/host-options.ts';
import { parseRatio } from './host-set.ts';
import { kindViews } from '../kinds.ts';
import { type Format, printList, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { oneOf } from '../options/place-options.ts';
import { replace } from '../replace.ts';
import { effectLines, removeUsed } from './remove-used.ts';
import { openSession } from '../session.ts';
import { collect, parseInteger, parseMemoryMiB } from '../options/units.ts';

export function poolCommand(cli: Cli): Command {
  return new Command('pool')
    .description('Pools: named groups of hosts')
    .addCommand(lsCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(setCommand(cli))
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
        empty: 'no pools; create one: berth pool create NAME',
      });
    });
}

interface PoolOptions {
  readonly profile?: string;
  readonly weight: readonly string[];
  readonly cpuRatio?: string;
  readonly hostLimit: readonly string[];
  readonly hostPath: readonly string[];
  readonly defaultCpus?: string;
  readonly defaultMemory?: string;
  readonly description?: string;
  readonly onHostLoss?: string;
}

function withOptions(command: Command): Command {
  return command
    .argument('<name>')
    .option('--profile <profile>', `scoring profile of its hosts: ${profileNames.join(', ')}`)
    .option('--weight <score=weight>', 'weight of a score on its hosts; may be repeated', collect, [])
    .option('--cpu-ratio <number>', 'CPU overcommit ratio of its hosts; default: 4')
    .option(
      '--host-limit <class=amount>',
      'most that each of its hosts may report: VCPU=64, MEMORY_MB=262144; may be repeated',
      collect,
      [],
    )
    .option(
      '--host-path <path>',
      'folder of its hosts that containers may mount, with everything in it; none: no folder; may be repeated',
      collect,
      [],
    )
    .option('--default-cpus <count>', 'for instances of this pool that do not set it')
    .option('--default-memory <amount>', 'for instances of this pool that do not set it: 2GiB')
    .option('--on-host-loss <rule>', `for instances that do not set it, once their host is down: ${onHostLossHelp}`)
    .option('--description <text>', 'free text');
}

function createCommand(cli: Cli): Command {
  return withOptions(new Command('create').description('Create a pool; hosts name their pool themselves')).action(
    async (name: string, options: PoolOptions, command: Command) => {
      const spec = changed({ description: '' }, options);
      const { client } = await openSession(cli, command);
      await attempting(`create pool "${name}"`, () => client.create('pool', { metadata: { name }, spec }));
      cli.stdout.write(`pool ${name} created\n`);
    },
  );
}

function setCommand(cli: Cli): Command {
  return withOptions(
    new Command('set').description(
      'Change a pool; "none" removes a profile, a ratio, a rule or a default; SCORE= removes a weight, CLASS= a limit',
    ),
  )
    .option('--dry-run', 'change nothing: show what would no longer fit')
    .addOption(outputOption('value'))
    .action(async (name: string, given: PoolOptions & { dryRun?: true; output: Format }, command: Command) => {
      const { dryRun, output, ...options } = given;
      if (Object.values(options).every((value) => Array.isArray(value) && value.length === 0))
        throw usageError(`no change of pool "${name}" is given`, '"berth pool set --help" shows the options');
      const { client } = await openSession(cli, command);
      if (dryRun)
        return attempting(
          `change pool "${name}"`,
          () => showPoolEffects(cli, client, { name, options, output }),
          advice,
        );
      await attempting(
        `change pool "${name}"`,
        () => replace(client, { kind: 'pool', name, change: ({ spec }) => changed(spec, options) }),
        advice,
      );
      cli.stdout.write(`pool ${name} changed\n`);
    });
}

interface Asked {
  readonly name: string;
  readonly options: PoolOptions;
  readonly output: Format;
}

async function showPoolEffects(cli: Cli, client: UserClient, { name, options, output }: Asked): Promise<void> {
  const { metadata, spec } = await client.get('pool', name);
  const { effects } = await client.dryRunOfChange('pool', name, {
    metadata: { labels: metadata.labels },
    spec: changed(spec, options),
  });
  if (!effects) return;
  if (output === 'json' || output === 'yaml') return printValue(cli, output, effects);
  const lines = effects.count === 0 ? [`everything still fits pool ${name}`] : effectLines(cli, effects);
  cli.stdout.write(`${lines.join('\n')}\n`);
}

const advice = { NotFound: '"berth pool ls" shows the pools' } as const;

function changed(before: PoolSpec, options: PoolOptions): PoolSpec {
  const { profile: _profile, weights: _weights, defaults: _defaults, onHostLoss: _loss, ...others } = before;
  const { allocationRatios: _ratios, hostLimits: _limits, hostPaths: pathsBefore, ...rest } = others;
  const profile = unlessNone(options.profile, before.profile, (text) => oneOf('--profile', text, profileNames));
  const onHostLoss = unlessNone(options.onHostLoss, before.onHostLoss, (text) =>
    oneOf('--on-host-loss', text, OnHostLoss.enum),
  );
  const weights = changedWeights(before.weights, options.weight);
  const allocationRatios = changedRatios(before.allocationRatios, options.cpuRatio);
  const defaults = changedDefaults(before.defaults, options);
  const hostLimits = changedLimits(before.hostLimits ?? {}, options.hostLimit);
  const hostPaths = options.hostPath.length === 0 ? pathsBefore : options.hostPath.filter((path) => path !== 'none');
  return {
    ...rest,
    ...(hostPaths === undefined || hostPaths.length === 0 ? {} : { hostPaths: [...hostPaths] }),
    ...(options.description === undefined ? {} : { description: options.description }),
    ...(profile === undefined ? {} : { profile }),
    ...(onHostLoss === undefined ? {} : { onHostLoss }),
    ...(Object.keys(weights).length === 0 ? {} : { weights }),
    ...(Object.keys(allocationRatios).length === 0 ? {} : { allocationRatios }),
    ...(Object.keys(hostLimits).length === 0 ? {} : { hostLimits }),
    ...(Object.keys(defaults).length === 0 ? {} : { defaults }),
  };
}

function changedLimits(before: Readonly<Record<string, number>>, pairs: readonly string[]): Record<string, number> {
  const limits = { ...before };
  for (const pair of pairs) {
    const [, of = '', amount = ''] = /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(pair) ?? [];
    if (of === '')
      throw usageError(
        `--host-limit cannot be "${pair}"`,
        'write CLASS=AMOUNT, with a class in capital letters: VCPU=64',
      );
    if (amount === '') delete limits[of];
    else limits[of] = parseInteger('--host-limit', amount, { min: 0, max: Number.MAX_SAFE_INTEGER });
  }
  return limits;
}

function changedWeights(before: PoolSpec['weights'], pairs: readonly string[]): Record<string, number> {
  const gone = new Set(pairs.filter((pair) => /^[^=]+=$/.test(pair)).map((pair) => pair.slice(0, -1)));
  const left = Object.entries(before ?? {}).filter(([name]) => !gone.has(name));
  return {
    ...Object.fromEntries(left),
    ...parseWeights(pairs.filter((pair) => !gone.has(pair.slice(0, -1)))),
  };
}

function changedRatios(before: PoolSpec['allocationRatios'], text: string | undefined): Record<string, number> {
  const { VCPU: ratioBefore, ...others } = before ?? {};
  const ratio = unlessNone(text, ratioBefore, (number) => parseRatio('--cpu-ratio', number, '"none"'));
  return ratio === undefined ? others : { ...others, VCPU: ratio };
}

function changedDefaults(before: PoolSpec['defaults'], options: PoolOptions): NonNullable<PoolSpec['defaults']> {
  const cpus = unlessNone(options.defaultCpus, before?.cpus, (text) =>
    parseInteger('--default-cpus', text, { min: 1, max: 1024 }),
  );
  const memoryMiB = unlessNone(options.defaultMemory, before?.memoryMiB, (text) =>
    parseMemoryMiB(text, '--default-memory'),
  );
  return { ...(cpus === undefined ? {} : { cpus }), ...(memoryMiB === undefined ? {} : { memoryMiB }) };
}

function unlessNone<T>(text: string | undefined, before: T | undefined, parse: (text: string) => T): T | undefined {
  if (text === undefined) return before;
  return text === 'none' ? undefined : parse(text);
}

function rmCommand(cli: Cli): Command {
  const command = new Command('rm').description('Remove pools; their hosts stay').argument('<pool...>');
  return removeUsed(cli, command, { kind: 'pool', word: 'pool', advice });
}
