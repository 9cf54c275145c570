// `berth task ...`: room held for a limited time; `berth reserve` creates such tasks.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';
import { kindViews } from '../kinds.ts';
import { type Format, printList } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { openSession } from '../session.ts';

export function taskCommand(cli: Cli): Command {
  return new Command('task')
    .description('Tasks: resources reserved for a limited time, without an instance')
    .addCommand(lsCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all tasks of the project')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const { items } = await attempting('list tasks', () => listAll(client, 'task', { project }));
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      await printList(cli, output, {
        items,
        columns: kindViews.task({ nowMs: cli.clock.nowMs() }),
        empty: 'no tasks; create one: berth reserve --cpus 2 --memory 4GiB --for 10m',
      });
    });
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('End tasks early and release their resources')
    .argument('<task...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove task "${name}"`, () => client.delete('task', name, { project }), {
          NotFound: '"berth task ls" shows the tasks',
        });
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
