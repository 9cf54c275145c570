// `berth explain NAME`: why an instance is where it is, or why it has no host, what would change that, and the verdict
// of each host.

import { Command } from 'commander';
import type {
  Explanation,
  HostExplanation,
  PlacedExplanation,
  QueueExplanation,
  ReasonExplanation,
} from '../../api/explanation.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { type Colours, coloursFor, type Format, fieldLines, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { visible } from '../print/terminal.ts';
import { age, amountText } from '../options/units.ts';
import { seeInstances } from './instance-advice.ts';

const allPage = 1_000;

interface ExplainFlags {
  readonly output: Format;
  readonly all?: true;
}

export function explainCommand(cli: Cli): Command {
  return new Command('explain')
    .description('Explain the placement of an instance, and what would change it')
    .argument('<instance>')
    .option('-a, --all', 'every host, not only the first 20')
    .addOption(outputOption('value'))
    .action(async (name: string, { output, all }: ExplainFlags, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const explanation = await attempting(
        `explain instance "${name}"`,
        () => wholeOf((page) => client.explain(name, { project, ...page }), all === true),
        { NotFound: `${seeInstances}; why a task waits: berth task ls` },
      );
      if (output === 'json' || output === 'yaml') return printValue(cli, output, explanation);
      const colours = coloursFor(cli.stdout, cli.environment);
      cli.stdout.write(`${explanationLines(explanation, colours, cli.clock.nowMs()).join('\n')}\n`);
    });
}

/** One page, or all of them joined. */
export async function wholeOf<T extends Pick<Explanation, 'hosts' | 'continue'>>(
  ask: (page: { limit?: number; continue?: string }) => Promise<T>,
  all: boolean,
): Promise<T> {
  if (!all) return ask({});
  const first = await ask({ limit: allPage });
  const hosts = [...first.hosts];
  for (let next = first.continue; next !== undefined; ) {
    const page = await ask({ limit: allPage, continue: next });
    hosts.push(...page.hosts);
    next = page.continue;
  }
  const { continue: _last, ...whole } = { ...first, hosts };
  return whole as T; // `continue` is optional
}

export function explanationLines(explanation: Explanation, colours: Colours, nowMs: number): string[] {
  const { instance, phase, host, summary } = explanation;
  return [
    `${colours.bold(visible(instance))} is ${phase}${host === undefined ? '' : ` on ${visible(host)}`}: ${visible(summary)}`,
    ...fieldLines(
      [
        ...factsOf(explanation),
        ...(explanation.queue ? queueFacts(explanation.queue) : []),
        ...(explanation.placed ? placedFacts(explanation.placed, nowMs) : []),
      ],
      '  ',
    ),
    ...nearestLines(explanation),
    ...hostsLines(explanation, colours),
  ];
}

type Facts = readonly (readonly [string, string | undefined])[];

export function factLines(asked: Pick<Explanation, 'amounts' | 'profile'>): string[] {
  return fieldLines(factsOf(asked), '  ');
}

function factsOf({ amounts, profile }: Pick<Explanation, 'amounts' | 'profile'>): Facts {
  const asked = Object.entries(amounts).map(([resourceClass, amount]) => amountText(visible(resourceClass), amount));
  return [
    ['asks for', asked.join(', ')],
    ['profile', profile],
  ];
}

function queueFacts({ position, waiting, ahead, projectShare }: QueueExplanation): Facts {
  const more = position !== undefined && position - 1 > ahead.length ? ', …' : '';
  const before = ahead.length === 0 ? '' : `, after ${ahead.join(', ')}${more}`;
  return [
    ['queue', position === undefined ? `one of ${waiting} that wait` : `${position} of ${waiting}${before}`],
    ['project', `uses ${round(100 * projectShare)} % of the fleet`],
  ];
}

function placedFacts({ decidedAtMs, better, runnersUp, changes, ...placed }: PlacedExplanation, nowMs: number): Facts {
  const { scoreThen, scoreNow } = placed;
  const rated = (hosts: PlacedExplanation['better']): string =>
    hosts.map(({ host, score }) => `${host} (${round(score)})`).join(', ');
  const then = scoreThen === undefined ? '' : `, ${round(scoreThen)} at placement`;
  return [
    ['decided', decidedAtMs === undefined ? undefined : `${age(nowMs - decidedAtMs)} ago`],
    ['score', scoreNow === undefined ? 'it would not fit its host now' : `${round(scoreNow)} now${then}`],
    ['better', rated(better)],
    ['others', better.length > 0 ? undefined : rated(runnersUp)],
    ['changed', changes.join('; ')],
  ];
}

export function nearestLines({ nearest, counts }: Pick<Explanation, 'nearest' | 'counts'>): string[] {
  if (!nearest || counts.hosts === 0) return [];
  if (nearest.length === 0) return ['', 'No single change of the fleet or of the request would make it fit.'];
  const lines = nearest.map(({ message, hosts, hostCount }) => {
    const named = hosts.filter((host) => !message.includes(host));
    const where =
      named.length === 0 || hosts.length > named.length
        ? ''
        : `  (${named.slice(0, 3).join(', ')}${hostCount > 3 ? ', …' : ''})`;
    return `  ${visible(message)}${visible(where)}`;
  });
  return ['', 'It would fit, nearest first:', ...lines];
}

/** The requested hosts; above them the reasons in short, unless all hosts are shown. */
export function hostsLines(
  { hosts, counts, reasons, continue: more }: Pick<Explanation, 'hosts' | 'counts' | 'reasons' | 'continue'>,
  colours: Colours,
): string[] {
  if (counts.hosts === 0) return ['', 'There is no host yet; start an agent on one: berth agent --help'];
  const width = Math.max(0, ...hosts.map((each) => visible(each.host).length));
  return [
    '',
    ...(more === undefined ? [] : [`${counts.fit} of ${counts.hosts} hosts fit.`, ...reasonLines(reasons), '']),
    ...hosts.flatMap((each) => hostLines(each, width, colours)),
    ...(more === undefined ? [] : [`and ${counts.hosts - hosts.length} more; --all shows every host`]),
  ];
}

/** `7 InsufficientMemory, as h1: ...`. */
export function reasonLines(reasons: readonly ReasonExplanation[]): string[] {
  return reasons.map(reasonLine);
}

function reasonLine({ reason, hosts, alone, examples }: ReasonExplanation): string {
  const [example] = examples;
  const only = alone === hosts ? '' : ` (${alone} for this alone)`;
  return `  ${hosts} ${visible(reason)}${only}${example ? `, as ${visible(example.host)}: ${visible(example.message)}` : ''}`;
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
