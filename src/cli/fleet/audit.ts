// `berth audit`: proves the fleet consistent, or says what is not, since when and why; with --apply repairs it.

import { Command } from 'commander';
import type { AuditReport, Finding } from '../../api/audit.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, exitCodes } from '../exit-codes.ts';
import { coloursFor, type Column, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { visible } from '../print/terminal.ts';
import { age, parseDurationMs, seconds } from '../options/units.ts';

interface AuditFlags {
  readonly apply?: true;
  readonly removeUnknown?: true;
  readonly olderThan: string;
  readonly output: Format;
}

export function auditCommand(cli: Cli): Command {
  return new Command('audit')
    .description('Prove the fleet consistent, or say what is not: wanted, held and found on hosts')
    .option('--apply', 'repair what can be repaired; every repair is logged')
    .option('--remove-unknown', 'with --apply: remove guests that no instance stands for, with their disks')
    .option(
      '--older-than <duration>',
      'only what has been so for that long; younger things are mostly under way',
      '60s',
    )
    .addOption(outputOption('value'))
    .addHelpText(
      'after',
      '\n--apply mends RoomLeaked (where no host has a say any more), RoomMissing and OrphanRecord; with --remove-unknown also\nUnknownGuest, UnknownVolume and SecondGuest. The others are told only.\nThe exit code is 0 when all fits, 7 when something does not.',
    )
    .action(async ({ apply, removeUnknown, olderThan, output }: AuditFlags, command: Command) => {
      if (removeUnknown && !apply)
        throw new CommandError(exitCodes.usage, '--remove-unknown does nothing without --apply');
      const olderThanMs = parseDurationMs('--older-than', olderThan);
      const { client } = await openSession(cli, command);
      const report = await attempting('audit the fleet', () =>
        client.audit({ olderThanMs, apply: apply === true, removeUnknown: removeUnknown === true }),
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
  return count === 1 ? '1 thing does not fit' : `${count} things do not fit together`;
}

function adviceFor(
  { findings }: AuditReport,
  { apply, removeUnknown }: Pick<AuditFlags, 'apply' | 'removeUnknown'>,
): string {
  if (!removeUnknown && findings.some(({ destroys }) => destroys))
    return 'guests that nothing stands for go, with their disks, only by --apply --remove-unknown';
  if (apply) return 'what is left needs a person: the lines above say why';
  return findings.some(({ repair }) => repair !== undefined)
    ? 'mend what can be mended with --apply'
    : 'none of it can be mended by --apply: the lines above say why it is so';
}

function reportLines(
  cli: Cli,
  { findings, young, checked, repaired, watchedMs }: AuditReport,
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
    ...(hostsHeard < hosts
      ? [`${hosts - hostsHeard} of the hosts are not heard: of what they have nothing is known now`]
      : []),
    ...(watchedMs < olderThanMs
      ? [`this control plane has looked for ${seconds(watchedMs)} only: to it nothing is older`]
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
