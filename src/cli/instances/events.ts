// `berth events`: past events, oldest first; with -f also new ones.

import { Command } from 'commander';
import type { Event } from '../../api/resources/event.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';
import { kindViews } from '../kinds.ts';
import { type Column, type Format, printList } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { watchList } from '../print/watch-list.ts';

interface EventsOptions {
  readonly follow?: true;
  readonly output: Format;
}

export function eventsCommand(cli: Cli): Command {
  return new Command('events')
    .description('Show events')
    .argument('[instance]', 'only events of the instance, host or image of this name')
    .option('-f, --follow', 'follow new events until Ctrl-C')
    .addOption(outputOption('list'))
    .action(async (subject: string | undefined, { follow, output }: EventsOptions, command: Command) => {
      const { client } = await openSession(cli, command);
      const { project } = command.optsWithGlobals<{ project?: string }>();
      const query = { ...(subject === undefined ? {} : { subject }), ...(project === undefined ? {} : { project }) };
      const empty =
        subject === undefined
          ? 'no events yet'
          : `no recorded event is about "${subject}"; for names see berth ps, berth host ls, berth image ls`;
      await attempting('show events', async () => {
        if (follow) {
          // Lines, also on a terminal: a history is not redrawn and its ages would become wrong, so it shows times
          // instead.
          const plain: Cli = { ...cli, stdout: { write: (data) => cli.stdout.write(data), isTTY: false } };
          return watchList(plain, client, {
            kind: 'event',
            query,
            format: output,
            columns: timedColumns,
            sort: oldestFirst,
            empty,
          });
        }
        const { items } = await listAll(client, 'event', query);
        await printList(cli, output, {
          items: items.sort(oldestFirst),
          columns: kindViews.event({ nowMs: cli.clock.nowMs() }),
          empty,
        });
      });
    });
}

function timedColumns(nowMs: number): Column<Event>[] {
  const [, ...rest] = kindViews.event({ nowMs });
  return [
    { header: 'TIME', value: ({ metadata }) => new Date(metadata.createdAtMs).toISOString().slice(11, 23) },
    ...rest,
  ];
}

function oldestFirst(a: Event, b: Event): number {
  return a.metadata.createdAtMs - b.metadata.createdAtMs || a.metadata.revision - b.metadata.revision;
}
