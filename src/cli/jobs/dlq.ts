// `berth dlq ...`: messages of the broker that made no job, and why.

import { Command } from 'commander';
import type { DeadLetter } from '../../api/dead-letter.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { age, bytes } from '../options/units.ts';
import { type Column, fieldLines, type Format, printTable, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { openSession } from '../session.ts';

export function dlqCommand(cli: Cli): Command {
  return new Command('dlq')
    .description('Dead letters: messages of the broker that could not become jobs')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(changeCommand(cli, 'retry'))
    .addCommand(changeCommand(cli, 'drop'));
}

const notFound = { NotFound: '"berth dlq ls" shows the dead letters' };

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all dead letters; copies of one message are shown once')
    .addOption(outputOption('value'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const { items, more } = await attempting('list the dead letters', () => client.deadLetters());
      if (output === 'json' || output === 'yaml') return printValue(cli, output, items);
      if (items.length === 0) cli.stderr.write('no dead letters\n');
      else printTable(cli, columnsAt(cli.clock.nowMs()), items);
      if (more) cli.stderr.write('there are more behind these; they are shown when these are retried or dropped\n');
    });
}

function columnsAt(nowMs: number): Column<DeadLetter>[] {
  return [
    { header: 'ID', value: ({ id }) => id },
    { header: 'REASON', value: ({ reason }) => reason },
    { header: 'BY', value: ({ movedBy }) => movedBy },
    { header: 'COPIES', value: ({ copies }) => String(copies), right: true },
    { header: 'SIZE', value: (letter) => bytes(letter.bytes), right: true },
    { header: 'AGE', value: ({ movedAtMs }) => (movedAtMs === undefined ? '' : age(nowMs - movedAtMs)), right: true },
    { header: 'REQUEST', value: ({ requestId }) => requestId ?? '' },
  ];
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show a dead letter with its body')
    .argument('<id>')
    .addOption(outputOption('value'))
    .action(async (id: string, { output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const letter = await attempting(`show dead letter "${id}"`, () => client.deadLetter(id), notFound);
      if (output === 'json' || output === 'yaml') return printValue(cli, output, letter);
      const { reason, message, movedBy, copies, requestId, replyTo, correlationId, movedAtMs, body = '' } = letter;
      const lines = fieldLines([
        ['id', letter.id],
        ['reason', message === undefined ? reason : `${reason}: ${message}`],
        ['moved by', movedBy],
        ['moved', movedAtMs === undefined ? undefined : `${age(cli.clock.nowMs() - movedAtMs)} ago`],
        ['copies', String(copies)],
        ['size', bytes(letter.bytes)],
        ['request', requestId],
        ['reply to', replyTo],
        ['correlation', correlationId],
      ]);
      cli.stdout.write(`${lines.join('\n')}\n\n${visible(body, '\n')}\n`);
    });
}

const changes = {
  retry: {
    description: 'Publish dead letters again where they came from, and remove them',
    done: 'is published again',
  },
  drop: { description: 'Remove dead letters', done: 'is dropped' },
} as const;

function changeCommand(cli: Cli, verb: keyof typeof changes): Command {
  const { description, done } = changes[verb];
  return new Command(verb)
    .description(description)
    .argument('<id...>')
    .action(async (ids: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const change = verb === 'retry' ? client.retryDeadLetter : client.dropDeadLetter;
      const failures = await forEachName(cli, ids, async (id) => {
        await attempting(`${verb} dead letter "${id}"`, () => change(id), notFound);
        cli.stdout.write(`${id} ${done}\n`);
      });
      if (failures.length > 0) throw joined(failures, ids.length);
    });
}
