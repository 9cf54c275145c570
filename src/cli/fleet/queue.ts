// `berth queue`: the pending instances in order, and why each waits.

import { Command } from 'commander';
import type { QueueItem, QueueList } from '../../api/queue.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { type Column, type Colours, coloursFor, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { visible } from '../print/terminal.ts';
import { age, parseInteger } from '../options/units.ts';

export function queueCommand(cli: Cli): Command {
  return new Command('queue')
    .description('List pending instances in queue order, with the reasons; for all projects, or for that of --project')
    .option('--limit <count>', 'at most this many', '100')
    .addOption(outputOption('value'))
    .action(async (options: { readonly limit: string; readonly output: Format }, command: Command) => {
      const limit = parseInteger('--limit', options.limit, { min: 1, max: 10_000 });
      const { client } = await openSession(cli, command);
      // Positions are global; only an explicit --project limits the list to one project.
      const { project } = command.optsWithGlobals<{ project?: string }>();
      const queue = await attempting('show the queue', () =>
        client.queue({ limit, ...(project === undefined ? {} : { project }) }),
      );
      if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, queue);
      cli.stdout.write(
        `${queueLines(queue, { colours: coloursFor(cli.stdout, cli.environment), nowMs: cli.clock.nowMs() }).join('\n')}\n`,
      );
    });
}

export function queueLines(
  { waiting, items, projects }: QueueList,
  { colours, nowMs }: { readonly colours: Colours; readonly nowMs: number },
): string[] {
  if (waiting === 0) return ['the queue is empty'];
  const more = waiting - items.length;
  return [
    ...tableLines(columnsAt(nowMs), items, { colours }),
    ...(more > 0 ? [`and ${more} more`] : []),
    '',
    ...projects.map(
      ({ project, weight, share }) =>
        `${visible(project)} has ${percent(share * weight)} of the fleet${weight === 1 ? '' : `, which counts as ${percent(share)} by its weight ${weight}`}`,
    ),
  ];
}

function percent(share: number): string {
  return `${Math.round(share * 1000) / 10} %`;
}

const columnsAt = (nowMs: number): readonly Column<QueueItem>[] => [
  { header: '#', value: ({ position }) => String(position), right: true },
  { header: 'PROJECT', value: ({ project }) => project },
  { header: 'NAME', value: ({ instance }) => instance },
  { header: 'PRIORITY', value: ({ priority }) => String(priority), right: true },
  { header: 'GANG', value: ({ gang }) => gang ?? '' },
  { header: 'WAITS', value: ({ waitingMs }) => age(waitingMs), right: true },
  {
    header: 'STARTS',
    value: ({ expectedStartMs }) =>
      expectedStartMs === undefined ? '' : `in ${age(Math.max(0, expectedStartMs - nowMs))}`,
    right: true,
  },
  { header: 'WHY', value: ({ message }) => message },
];
