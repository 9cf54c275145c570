// `berth verify`: checks the fleet for inconsistencies and lists them with age and reason; with --apply it repairs them.

import { Command } from 'commander';
import type { VerifyReport, Finding } from '../../api/verify.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, exitCodes } from '../exit-codes.ts';
import { coloursFor, type Column, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { visible } from '../print/terminal.ts';
import { age, parseDurationMs, seconds } from '../options/units.ts';

interface VerifyFlags {
  readonly apply?: true;
  readonly removeUnknown?: true;
  readonly olderThan: string;
  readonly output: Format;
}

export function verifyCommand(cli: Cli): Command {
  return verifyingCommand(cli, new Command('verify')).description(
    'Check that instances, reservations and the guests found on hosts agree',
  );
}

/** Adds the options and the action of `berth verify` to `command`. `before` runs first. */
export function verifyingCommand(cli: Cli, added: Command, before: () => void = () => {}): Command {
  return added
    .option('--apply', 'repair what can be repaired; each repair is logged')
    .option('--remove-unknown', 'with --apply: remove unknown guests, with their disks')
    .option(
      '--older-than <duration>',
      'only findings at least this old; younger ones are mostly work in progress',
      '60s',
    )
    .addOption(outputOption('value'))
    .addHelpText(
      'after',
      '\n--apply repairs RoomLeaked (of hosts that no longer exist), RoomMissing and OrphanRecord; with --remove-unknown also\nUnknownGuest, UnknownVolume and SecondGuest. The others are only reported.\nThe exit code is 0 when the fleet is consistent, and 7 when it is not.',
    )
    .action(async ({ apply, removeUnknown, olderThan, output }: VerifyFlags, command: Command) => {
      before();
      if (removeUnknown && !apply)
        throw new CommandError(exitCodes.usage, '--remove-unknown does nothing without --apply');
      const olderThanMs = parseDurationMs('--older-than', olderThan);
      const { client } = await openSession(cli, command);
      const report = await attempting('verify the fleet', () =>
        client.verify({ olderThanMs, apply: apply === true, removeUnknown: removeUnknown === true }),
      );
      if (output === 'json' || output === 'yaml') await printValue(cli, output, report);
      else cli.stdout.write(`${reportLines(cli, report, { olderThan, olderThanMs }).join('\n')}\n`);
      if (report.findings.length > 0)
        throw new CommandError(exitCodes.badOutcome, outcomeOf(report.findings.length), {
          advice: adviceFor(report, { apply, removeUnknown }),
        });
    });
}

function outcomeOf(count: number): string {
  return count === 1 ? '1 inconsistency found' : `${count} inconsistencies found`;
}

function adviceFor(
  { findings }: VerifyReport,
  { apply, removeUnknown }: Pick<VerifyFlags, 'apply' | 'removeUnknown'>,
): string {
  if (!removeUnknown && findings.some(({ destroys }) => destroys))
    return 'unknown guests and their disks are removed only by --apply --remove-unknown';
  if (apply) return 'what is left needs an operator: the lines above say why';
  return findings.some(({ repair }) => repair !== undefined)
    ? 'repair what can be repaired with --apply'
    : '--apply can repair none of it: the lines above say why';
}

function reportLines(
  cli: Cli,
  { findings, young, checked, repaired, watchedMs }: VerifyReport,
  { olderThan, olderThanMs }: { readonly olderThan: string; readonly olderThanMs: number },
): string[] {
  const { instances, allocations, providers, hosts, hostsHeard } = checked;
  const looked = Object.entries({ instances, allocations, providers, hosts })
    .map(([kind, count]) => `${count} ${count === 1 ? kind.slice(0, -1) : kind}`)
    .join(', ');
  return [
    ...repaired.map((what) => `repaired: ${visible(what)}`),
    ...(findings.length > 0 ? tableLines(columns, findings, { colours: coloursFor(cli.stdout, cli.environment) }) : []),
    `${findings.length === 0 ? 'consistent: ' : ''}${looked}${young > 0 ? `; ${young} younger than ${olderThan} left out` : ''}`,
    ...(hostsHeard < hosts ? [`${hosts - hostsHeard} of the hosts send no heartbeats: what they have is unknown`] : []),
    ...(watchedMs < olderThanMs
      ? [`this control plane has watched for only ${seconds(watchedMs)}: it knows of nothing older`]
      : []),
  ];
}

const columns: readonly Column<Finding>[] = [
  { header: 'KIND', value: ({ code }) => code },
  { header: 'AGE', value: ({ ageMs }) => age(ageMs), right: true },
  { header: 'WHAT', value: ({ subject }) => subject },
  {
    header: 'FOUND',
    value: ({ message, cause, repair, destroys }) =>
      `${message}: ${cause}${repair ? ` [${destroys ? '--apply --remove-unknown' : '--apply'} ${repair}]` : ''}`,
  },
];
