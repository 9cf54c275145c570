// `berth workload ...`: equal instances, kept as many as wanted.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { show } from '../get.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { kindViews } from '../kinds.ts';
import { listAll } from '../print/follow.ts';
import { type Format, printList, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { replace } from '../replace.ts';
import { openSession } from '../session.ts';
import { fieldChanges } from '../../api/field-changes.ts';
import { fieldLine } from '../apply/print-plan.ts';
import { age, parseDurationMs } from '../options/units.ts';
import { scaleCommand } from './scale.ts';
import { undoCommand } from './undo.ts';
import { createCommand, updateCommand } from './workload-spec.ts';
import { untilAvailable } from './workload-wait.ts';

const unknown = { NotFound: '"berth workload ls" shows the workloads' };

export function workloadCommand(cli: Cli): Command {
  const command = new Command('workload').description('Workloads: identical instances, kept running and updated');
  for (const make of [
    createCommand,
    lsCommand,
    showCommand,
    statusCommand,
    scaleCommand,
    updateCommand,
    pauseCommand,
    resumeCommand,
    historyCommand,
    undoCommand,
    endpointsCommand,
    rmCommand,
  ])
    command.addCommand(make(cli));
  return command;
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all workloads of the project')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const { items } = await attempting('list workloads', () => listAll(client, 'workload', { project }));
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      await printList(cli, output, {
        items,
        columns: kindViews.workload({ nowMs: cli.clock.nowMs() }),
        empty: 'no workloads; create one: berth workload create NAME IMAGE --replicas 3',
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show a workload as it is stored')
    .argument('<workload>')
    .addOption(outputOption('one', 'yaml'))
    .action(async (name: string, { output }: { output: Format }, command: Command) =>
      show(cli, await openSession(cli, command), 'workload', { name, format: output }),
    );
}

interface StatusOptions {
  readonly wait?: true;
  readonly timeout?: string;
  readonly output: Format;
}

function statusCommand(cli: Cli): Command {
  return new Command('status')
    .description('Show the progress of a workload')
    .argument('<workload>')
    .option('-w, --wait', 'wait until all copies are available and of the current revision')
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .addOption(outputOption('value'))
    .action(async (name: string, { wait, timeout, output }: StatusOptions, command: Command) => {
      const session = await openSession(cli, command);
      const { client, project } = session;
      const timeoutMs = timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
      const found = await attempting(
        `show workload "${name}"`,
        () => client.get('workload', name, { project }),
        unknown,
      );
      const { spec, status } = wait ? await untilAvailable(cli, session, found, timeoutMs) : found;
      if (output === 'json' || output === 'yaml') return printValue(cli, output, status);
      const said = `${spec.paused ? 'paused; ' : ''}${status.conditions[0]?.message ?? ''}`;
      cli.stdout.write(visible(`${name}: revision ${status.revision}: ${said}\n`, '\n'));
    });
}

function pauseCommand(cli: Cli): Command {
  return setPaused(cli, 'pause', true).description('Pause an update; copies that fail are still replaced');
}

function resumeCommand(cli: Cli): Command {
  return setPaused(cli, 'resume', false).description('Resume a paused update');
}

function setPaused(cli: Cli, verb: string, paused: boolean): Command {
  return new Command(verb).argument('<workload>').action(async (name: string, _options: unknown, command: Command) => {
    const { client, project } = await openSession(cli, command);
    const change = { kind: 'workload', name, project } as const;
    await attempting(
      `${verb} workload "${name}"`,
      () => replace(client, { ...change, change: ({ spec }) => ({ ...spec, paused }) }),
      unknown,
    );
    cli.stdout.write(`workload ${name} ${paused ? 'paused' : 'resumed'}\n`);
  });
}

function historyCommand(cli: Cli): Command {
  return new Command('history')
    .description('Show the revisions of a workload, and what each changed')
    .argument('<workload>')
    .addOption(outputOption('value'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const work = () => client.workloadRevisions(name, { project });
      const { items } = await attempting(`show the revisions of workload "${name}"`, work, unknown);
      if (output === 'json' || output === 'yaml') return printValue(cli, output, items);
      const nowMs = cli.clock.nowMs();
      const lines = items.flatMap(({ number, createdAtMs, isPresent, isStable, template }, i) => {
        const marks = [isPresent ? 'current' : '', isStable ? 'stable' : ''].filter((mark) => mark !== '');
        const before = items[i - 1]?.template;
        const changes = before === undefined ? [] : fieldChanges(before, template).map(fieldLine);
        const image = before === undefined ? [`    image: ${template.spec.image}`] : [];
        const head = [`revision ${number}`, `${age(nowMs - createdAtMs)} ago`, ...marks].join(', ');
        return [head, ...image, ...changes];
      });
      cli.stdout.write(visible(`${lines.join('\n')}\n`, '\n'));
    });
}

function endpointsCommand(cli: Cli): Command {
  return new Command('endpoints')
    .description('Show addresses and ports of the copies that are ready')
    .argument('<workload>')
    .addOption(outputOption('value'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const work = () => client.workloadEndpoints(name, { project });
      const { items } = await attempting(`show the endpoints of workload "${name}"`, work, unknown);
      if (output === 'json' || output === 'yaml') return printValue(cli, output, items);
      if (items.length === 0) cli.stderr.write('no copy is ready\n');
      for (const { instance, host, address, ports } of items) {
        const published = ports.map(({ hostPort, guestPort, protocol }) => `${hostPort}→${guestPort}/${protocol}`);
        cli.stdout.write(visible(`${[instance, host, address ?? '-', ...published].join('  ')}\n`, '\n'));
      }
    });
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove workloads and their instances')
    .argument('<workload...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove workload "${name}"`, () => client.delete('workload', name, { project }), unknown);
        cli.stdout.write(`${name} is being removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
