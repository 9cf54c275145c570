// `berth explain NAME`: why an instance is where it is, or why it is nowhere, host by host with every refusal.

import { Command } from 'commander';
import type { Explanation, HostExplanation } from '../api/explanation.ts';
import type { Cli } from './cli.ts';
import { attempting } from './exit-codes.ts';
import { type Colours, coloursFor, type Format, fieldLines, parseFormat, printValue } from './output.ts';
import { openSession } from './session.ts';
import { visible } from './terminal.ts';
import { memory } from './units.ts';

export function explainCommand(cli: Cli): Command {
  return new Command('explain')
    .description('Say why an instance is where it is, host by host')
    .argument('<instance>')
    .option('-o, --output <format>', 'table, json or yaml', parseFormat, 'table')
    .action(async (name: string, { output }: { readonly output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const explanation = await attempting(`explain instance "${name}"`, () => client.explain(name, { project }), {
        NotFound: '"berth ps" shows the instances',
      });
      if (output === 'json' || output === 'yaml') return printValue(cli, output, explanation);
      cli.stdout.write(`${explanationLines(explanation, coloursFor(cli.stdout, cli.environment)).join('\n')}\n`);
    });
}

export function explanationLines(explanation: Explanation, colours: Colours): string[] {
  const { instance, phase, host, summary, profile, amounts, hosts } = explanation;
  const width = Math.max(0, ...hosts.map((each) => visible(each.host).length));
  return [
    `${colours.bold(visible(instance))} is ${phase}${host === undefined ? '' : ` on ${visible(host)}`}: ${visible(summary)}`,
    ...fieldLines(
      [
        ['asks for', Object.entries(amounts).map(amountText).join(', ')],
        ['profile', profile],
      ],
      '  ',
    ),
    '',
    ...(hosts.length === 0 ? ['There is no host yet; start an agent on one: berth agent --help'] : []),
    ...hosts.flatMap((each) => hostLines(each, width, colours)),
  ];
}

function hostLines(
  { host, current, fits, refusals, score, scores }: HostExplanation,
  width: number,
  colours: Colours,
): string[] {
  const name = `${current ? '*' : ' '} ${visible(host).padEnd(width)}  `;
  if (fits) {
    const parts = Object.entries(scores ?? {}).map(([rule, points]) => `${visible(rule)} ${round(points)}`);
    return [
      `${name}${colours.green('fits')}${score === undefined ? '' : `  score ${round(score)}`}${parts.length > 1 ? ` (${parts.join(' + ')})` : ''}`,
    ];
  }
  return refusals.map(({ reason, message }, index) => {
    const lead = index === 0 ? name : ' '.repeat(name.length);
    return `${lead}${colours.red(visible(reason))}  ${visible(message)}`;
  });
}

function round(points: number): string {
  return String(Math.round(points * 10) / 10);
}

function amountText([resourceClass, amount]: [string, number]): string {
  switch (resourceClass) {
    case 'VCPU':
      return `${amount} CPU${amount === 1 ? '' : 's'}`;
    case 'MEMORY_MB':
      return `${memory(amount)} memory`;
    case 'DISK_GB':
      return `${amount} GiB disk`;
    default:
      return `${amount} ${visible(resourceClass)}`;
  }
}
