// `berth warm-pool ...`: guests that are kept booted ahead. `berth run --from-pool` claims one.

import { Command } from 'commander';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { hitRateOf, warmGuestsMax, type WarmPoolSpec, type WarmSchedule } from '../../api/resources/warm-pool.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { show } from '../get.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { type SpecOptions, specOf, withSpecOptions } from '../instances/run.ts';
import { type Judge, waitForResource } from '../instances/wait.ts';
import { kindViews } from '../kinds.ts';
import { parseClassAmount } from '../options/class-amounts.ts';
import { collect, parseDurationMs, parseInteger, parseLabels } from '../options/units.ts';
import { listAll } from '../print/follow.ts';
import { type Format, printList, printNames, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { replace } from '../replace.ts';
import { openSession } from '../session.ts';

const unknown = { NotFound: '"berth warm-pool ls" shows the warm pools' };

export function warmPoolCommand(cli: Cli): Command {
  const command = new Command('warm-pool').description('Warm pools: guests booted ahead, ready to be claimed');
  for (const make of [createCommand, lsCommand, showCommand, statusCommand, scaleCommand, rmCommand])
    command.addCommand(make(cli));
  return command;
}

interface CreateOptions extends SpecOptions {
  readonly guests: string;
  readonly suspended?: true;
  readonly forJobs?: true;
  readonly timeZone?: string;
  readonly window: readonly string[];
  readonly budget: readonly string[];
  readonly maxAge?: string;
  readonly wait?: true;
  readonly timeout?: string;
  readonly output: Format;
}

function createCommand(cli: Cli): Command {
  const command = withSpecOptions(
    new Command('create').description('Create a warm pool of an image').argument('<warm-pool>'),
  );
  return command
    .option('--guests <count>', 'guests that are kept ready', '1')
    .option('--suspended', 'suspend them once they are ready; a claim resumes one')
    .option('--for-jobs', 'its guests wait for the program of a job: berth job run --warm-pool')
    .option(
      '--window <window>',
      'another number at times, as cron names them: "10: 0 8 * * 1-5 to 0 18 * * 1-5"; may be repeated',
      collect,
      [],
    )
    .option('--time-zone <zone>', 'of --window: UTC, Europe/Berlin')
    .option(
      '--budget <class=amount>',
      'most that waiting guests may use together: cpus=8, memory=16GiB; may be repeated',
      collect,
      [],
    )
    .option('--max-age <duration>', 'replace guests that have waited for longer: 12h')
    .option('-w, --wait', 'wait until all guests are ready')
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .addOption(outputOption('list'))
    .action(async (name: string, image: string, options: CreateOptions, called: Command) => {
      const { suspended, maxAge, timeout, output } = options;
      const schedule = scheduleOf(options);
      const spec: Partial<WarmPoolSpec> = {
        template: {
          labels: parseLabels('--label', options.label),
          spec: (await specOf(cli, image, options)) as InstanceSpec, // the server adds the defaults
        },
        size: parseInteger('--guests', options.guests, { min: 0, max: warmGuestsMax }),
        ...(suspended ? { state: 'suspended' } : {}),
        ...(options.forJobs ? { forJobs: true } : {}),
        ...(schedule === undefined ? {} : { schedule }),
        ...(options.budget.length === 0 ? {} : { budget: Object.fromEntries(options.budget.map(budgetOf)) }),
        ...(maxAge === undefined ? {} : { maxAgeMs: parseDurationMs('--max-age', maxAge) }),
      };
      const timeoutMs = timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
      const session = await openSession(cli, called);
      const made = await attempting(
        `create warm pool "${name}"`,
        () => session.client.create('warmPool', { metadata: { name, project: session.project }, spec }),
        { AlreadyExists: `change it with "berth warm-pool scale ${name}" or "berth apply"` },
      );
      const { id } = made.metadata;
      const adviceAfter = (): string => `it continues; see "berth warm-pool status ${name}"`;
      const pool = options.wait
        ? await waitForResource(cli, session, {
            kind: 'warmPool',
            id,
            name,
            timeoutMs,
            judge: filled(name),
            adviceAfter,
          })
        : made;
      if (output === 'json' || output === 'yaml') return printValue(cli, output, pool);
      printNames(cli, [pool]);
    });
}

function scheduleOf({ window: windows, timeZone }: CreateOptions): WarmSchedule | undefined {
  if (windows.length === 0 && timeZone !== undefined) throw usageError('--time-zone needs --window');
  if (windows.length === 0) return undefined;
  if (timeZone === undefined) throw usageError('--window needs --time-zone', 'write UTC, or one as Europe/Berlin');
  return { timeZone, windows: windows.map(windowOf) };
}

/** `10: 0 8 * * 1-5 to 0 18 * * 1-5`. */
function windowOf(text: string): WarmSchedule['windows'][number] {
  const [, size, from, to] = /^ *(\d+) *: *(.+?) +to +(.+?) *$/.exec(text) ?? [];
  if (size === undefined || from === undefined || to === undefined)
    throw usageError(
      `--window cannot be "${text}"`,
      'write the number of guests, and when it begins and ends: "10: 0 8 * * 1-5 to 0 18 * * 1-5"',
    );
  return { size: parseInteger('--window', size, { min: 0, max: warmGuestsMax }), from, to };
}

/** `cpus=8`, `VCPU=8`. */
function budgetOf(pair: string): [string, number] {
  const { resourceClass, amount } = parseClassAmount('--budget', pair);
  if (amount === undefined)
    throw usageError(`--budget ${pair} lacks an amount`, 'write the most that waiting guests may use: cpus=8');
  return [resourceClass, amount];
}

function filled(name: string): Judge<'warmPool', { readonly metadata: { readonly name: string } }> {
  return (pool) => {
    if (!pool) return { failed: `warm pool "${name}" was removed` };
    const condition = pool.status.conditions.find(({ type }) => type === 'Ready');
    const said = condition?.message ?? '';
    if (pool.metadata.deletionRequestedAtMs !== undefined) return { failed: `warm pool "${name}" is being removed` };
    return condition?.status === 'True' ? { done: pool } : { waiting: said };
  };
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all warm pools of the project, and how many claims found a ready guest')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const { items } = await attempting('list warm pools', () => listAll(client, 'warmPool', { project }));
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      await printList(cli, output, {
        items,
        columns: kindViews.warmPool({ nowMs: cli.clock.nowMs() }),
        empty: 'no warm pools; create one: berth warm-pool create NAME IMAGE --guests 3',
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show a warm pool as it is stored')
    .argument('<warm-pool>')
    .addOption(outputOption('one', 'yaml'))
    .action(async (name: string, { output }: { output: Format }, command: Command) =>
      show(cli, await openSession(cli, command), 'warmPool', { name, format: output }),
    );
}

function statusCommand(cli: Cli): Command {
  return new Command('status')
    .description('Show how many guests are ready, and how many claims found one')
    .argument('<warm-pool>')
    .addOption(outputOption('value'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const work = () => client.get('warmPool', name, { project });
      const { status } = await attempting(`show warm pool "${name}"`, work, unknown);
      if (output === 'json' || output === 'yaml') return printValue(cli, output, status);
      const { hits, misses, conditions } = status;
      const rate = hitRateOf(status);
      const claims =
        rate === undefined
          ? 'no claim yet'
          : `${hits} of ${hits + misses} claims found a ready guest (${Math.round(100 * rate)} %)`;
      cli.stdout.write(visible(`${name}: ${conditions[0]?.message ?? ''}; ${claims}\n`, '\n'));
    });
}

function scaleCommand(cli: Cli): Command {
  return new Command('scale')
    .description('Change the number of guests kept ready outside of time windows')
    .argument('<warm-pool>')
    .argument('<guests>')
    .action(async (name: string, count: string, _options: unknown, command: Command) => {
      const size = parseInteger('guests', count, { min: 0, max: warmGuestsMax });
      const { client, project } = await openSession(cli, command);
      const change = { kind: 'warmPool', name, project } as const;
      await attempting(
        `scale warm pool "${name}"`,
        () => replace(client, { ...change, change: ({ spec }) => ({ ...spec, size }) }),
        unknown,
      );
      cli.stdout.write(`${name}: scaled to ${size}\n`);
    });
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove warm pools and the guests that wait in them; claimed ones stay')
    .argument('<warm-pool...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove warm pool "${name}"`, () => client.delete('warmPool', name, { project }), unknown);
        cli.stdout.write(`${name} is being removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
