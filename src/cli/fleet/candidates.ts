// `berth candidates`: hosts that would take a request, the best first. Nothing is claimed.

import { Command } from 'commander';
import type { Candidates } from '../../api/candidates.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { factLines, reasonLines } from '../instances/explain.ts';
import { type Column, coloursFor, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { type PlaceOptions, placeOf, withPlaceOptions, withRoomOptions } from '../options/place-options.ts';
import { openSession } from '../session.ts';
import { parseInteger } from '../options/units.ts';

interface CandidateOptions extends PlaceOptions {
  readonly image?: string;
  readonly limit: string;
  readonly output: Format;
}

export function candidatesCommand(cli: Cli): Command {
  const command = new Command('candidates')
    .description('Show the hosts that fit a request, the best first')
    .option('--image <image>', 'only where this image can run; its default resources apply');
  return withPlaceOptions(withRoomOptions(command))
    .option('--limit <count>', 'at most this many hosts', '20')
    .addOption(outputOption('value'))
    .action(async (options: CandidateOptions, called: Command) => {
      const limit = parseInteger('--limit', options.limit, { min: 1, max: 1000 });
      const spec = { ...placeOf(options), ...(options.image === undefined ? {} : { image: options.image }) };
      const { client, project } = await openSession(cli, called);
      const found = await attempting('find candidates', () => client.candidates({ project, spec, limit }));
      if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, found);
      const table = { colours: coloursFor(cli.stdout, cli.environment) };
      const lines = [
        `${found.counts.fit} of ${found.counts.hosts} hosts fit.`,
        ...factLines(found),
        ...(found.reasons.length === 0 ? [] : ['', ...reasonLines(found.reasons)]),
        ...(found.candidates.length === 0 ? [] : ['', ...tableLines(columns, found.candidates, table)]),
      ];
      cli.stdout.write(`${lines.join('\n')}\n`);
    });
}

const columns: readonly Column<Candidates['candidates'][number]>[] = [
  { header: 'HOST', value: ({ host }) => host },
  { header: 'SCORE', value: ({ score }) => String(Math.round(score * 10) / 10), right: true },
  {
    header: 'BY RULE',
    value: ({ scores }) =>
      Object.entries(scores)
        .map(([rule, points]) => `${rule} ${Math.round(points * 10) / 10}`)
        .join(' + '),
  },
];
