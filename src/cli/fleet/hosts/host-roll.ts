// `berth host roll`: the plan of the maintenance of several hosts, then the plan by its hash. The server carries it out.

import { Command } from 'commander';
import type { UserClient } from '../../../api/client/user-client.ts';
import type { PlannedGuest } from '../../../api/plans/host-plan.ts';
import { guestActionText } from '../../../api/plans/host-plan.ts';
import type {
  BlockedHost,
  HostRoll,
  PlannedRollHost,
  RollingHost,
  RollOptions,
  RollPlan,
} from '../../../api/plans/host-roll.ts';
import type { Cli } from '../../cli.ts';
import { attempting, CommandError, exitCodes, usageError } from '../../exit-codes.ts';
import { refuseNeedless } from '../../options/needless-options.ts';
import { age, parseDurationMs, parseInteger } from '../../options/units.ts';
import { applyCommand } from '../../print/apply-command.ts';
import { type Column, coloursFor, type Format, printValue, tableLines } from '../../print/output.ts';
import { outputOption } from '../../print/output-option.ts';
import { visible } from '../../print/terminal.ts';
import { openSession } from '../../session.ts';
import { watchProgress } from './watch-progress.ts';

interface Flags {
  readonly pool?: string;
  readonly maxAtOnce: string;
  readonly stopOthers?: true;
  readonly movesMax: string;
  readonly drainDeadline: string;
  readonly bootDeadline: string;
  readonly restore: boolean;
  readonly apply?: string;
  readonly status?: true;
  readonly watch?: true;
  readonly pause?: true;
  readonly resume?: true;
  readonly cancel?: true;
  readonly output: Format;
}

const choices: readonly (keyof Flags)[] = [
  ...(['pool', 'maxAtOnce', 'stopOthers', 'movesMax', 'drainDeadline', 'bootDeadline', 'restore'] as const),
];

export function rollCommand(cli: Cli): Command {
  return new Command('roll')
    .description('Show the plan to empty and reboot several hosts, one group after another; with --apply carry it out')
    .argument('[host...]')
    .option('-p, --pool <pool>', 'all hosts of this pool')
    .option('--max-at-once <count>', 'hosts in maintenance at a time', '1')
    .option('--stop-others', 'stop the instances that cannot move; they start again after the reboot')
    .option('--moves-max <count>', 'instances that leave one host at a time', '2')
    .option('--drain-deadline <duration>', 'a host must be empty after this time', '1h')
    .option('--boot-deadline <duration>', 'an empty host must be back from its reboot after this time', '1h')
    .option('--no-restore', 'do not move back what has left a host')
    .option('--apply <hash>', 'carry out the plan with this hash, with the same options; refused when it has changed')
    .option('--status', 'show the progress')
    .option('-w, --watch', 'show the progress until the end')
    .option('--pause', 'begin no other host; those in maintenance go on')
    .option('--resume', 'go on after --pause, or repeat the step that has failed')
    .option('--cancel', 'end it and open the hosts that are closed for it')
    .addOption(outputOption('value'))
    .action(async (hosts: string[], flags: Flags, command: Command) => {
      const { apply, status, pause, resume, cancel } = flags;
      const verbs = [apply, status, pause, resume, cancel].filter((flag) => flag !== undefined);
      if (verbs.length > 1) throw usageError('give only one of --apply, --status, --pause, --resume and --cancel');
      const isPlan = verbs.length === 0 && !flags.watch;
      if (isPlan || apply !== undefined) {
        if (hosts.length > 0 === (flags.pool !== undefined)) throw usageError('name either hosts or --pool');
      } else {
        if (hosts.length > 0) throw usageError('name hosts only with a plan or --apply');
        refuseNeedless(command, choices, besideOf(flags));
      }
      const { client } = await openSession(cli, command);
      await attempting('roll hosts', () => roll(cli, client, { hosts, flags, command }), {
        NotFound: '"berth host ls" shows the hosts, "berth pool ls" the pools',
      });
    });
}

function besideOf(flags: Flags): string {
  const verb = (['status', 'pause', 'resume', 'cancel'] as const).find((each) => flags[each]);
  return verb === undefined ? '--watch without --apply' : `--${verb}`;
}

interface Asked {
  readonly hosts: readonly string[];
  readonly flags: Flags;
  readonly command: Command;
}

async function roll(cli: Cli, client: UserClient, { hosts, flags, command }: Asked): Promise<void> {
  const { apply, status, watch, pause, resume, cancel, output } = flags;
  if (cancel) return printRoll(cli, output, await client.cancelRoll());
  if (pause || resume) {
    const now = await client.pauseRoll(pause === true);
    return watch ? watchRoll(cli, client, output) : printRoll(cli, output, now);
  }
  if (apply !== undefined) {
    const { roll: begun } = await client.rollHosts({ ...optionsOf(hosts, flags), apply });
    if (!watch) return begun && printRoll(cli, output, begun);
  }
  if (watch) return watchRoll(cli, client, output);
  if (status) return printRoll(cli, output, await client.showRoll());
  const { plan } = await client.rollHosts(optionsOf(hosts, flags));
  if (plan) await printPlan(cli, output, plan, applyCommand(command, plan.hash));
}

function optionsOf(hosts: readonly string[], flags: Flags): RollOptions {
  return {
    ...(flags.pool === undefined ? { hosts: [...hosts] } : { pool: flags.pool }),
    maxAtOnce: parseInteger('--max-at-once', flags.maxAtOnce, { min: 1, max: 100 }),
    stopOthers: flags.stopOthers === true,
    movesMax: parseInteger('--moves-max', flags.movesMax, { min: 1, max: 100 }),
    drainDeadlineMs: parseDurationMs('--drain-deadline', flags.drainDeadline),
    bootDeadlineMs: parseDurationMs('--boot-deadline', flags.bootDeadline),
    restore: flags.restore,
  };
}

async function printPlan(cli: Cli, output: Format, plan: RollPlan, next: string): Promise<void> {
  if (output === 'json' || output === 'yaml') return printValue(cli, output, plan);
  const colours = coloursFor(cli.stdout, cli.environment);
  const { hosts, blocked, options, hash } = plan;
  const lines = [
    `Plan to empty and reboot ${hosts.length} hosts, at most ${options.maxAtOnce} at a time.`,
    '',
    ...(hosts.length === 0 ? [] : [...tableLines(planColumns, hosts, { colours }), '']),
    ...(blocked.length === 0 ? [] : ['Left out:', ...tableLines(blockedColumns, blocked, { colours }), '']),
    `A host must be empty after ${age(options.drainDeadlineMs)}, and back ${age(options.bootDeadlineMs)} later; the first failure stops the roll.`,
    '',
    ...(hosts.length === 0 ? ['There is nothing to apply.'] : [`Plan ${hash}. Apply it with:`, visible(`  ${next}`)]),
  ];
  cli.stdout.write(`${lines.join('\n')}\n`);
}

const planColumns: readonly Column<PlannedRollHost>[] = [
  { header: 'HOST', value: ({ host }) => host },
  { header: 'GROUP', value: ({ group }) => String(group) },
  { header: 'INSTANCES', value: ({ guests }) => guestsText(guests) },
  { header: 'REBOOT', value: ({ byCommand }) => (byCommand ? 'by its agent' : 'by a person') },
];

/** `2 moved live, 1 stopped`. */
function guestsText(guests: readonly PlannedGuest[]): string {
  const counts = new Map<string, number>();
  for (const guest of guests) counts.set(guestActionText(guest), (counts.get(guestActionText(guest)) ?? 0) + 1);
  return counts.size === 0 ? 'none' : Array.from(counts, ([action, count]) => `${count} ${action}`).join(', ');
}

const blockedColumns: readonly Column<BlockedHost>[] = [
  { header: 'HOST', value: ({ host }) => host },
  { header: 'WHY', value: ({ reasons }) => reasons.map(({ message }) => message).join('; ') },
];

const rollColumns: readonly Column<RollingHost>[] = [
  { header: 'HOST', value: ({ host }) => host },
  { header: 'GROUP', value: ({ group }) => String(group) },
  {
    header: 'STATE',
    value: ({ step }) => step,
    paint: (cell, { step }, colours) => (step === 'failed' ? colours.red(cell) : cell),
  },
  { header: 'WHY', value: ({ message }) => message ?? '' },
];

async function printRoll(cli: Cli, output: Format, rolled: HostRoll): Promise<void> {
  if (output === 'json' || output === 'yaml') return printValue(cli, output, rolled);
  const { phase, hosts } = rolled;
  const done = hosts.filter(({ step }) => step === 'done').length;
  const colours = coloursFor(cli.stdout, cli.environment);
  const lines = [`${phase}, ${done} of ${hosts.length} hosts done`, ...tableLines(rollColumns, hosts, { colours })];
  cli.stdout.write(`${lines.join('\n')}\n`);
}

/** Until the roll has ended, or waits for a person. Throws unless every host is done. */
function watchRoll(cli: Cli, client: UserClient, output: Format): Promise<void> {
  return watchProgress(cli, {
    look: () => client.showRoll(),
    steps: ({ phase, hosts }) => [phase, hosts.map(({ step }) => step)],
    print: (now) => printRoll(cli, output, now),
    isOver({ phase }) {
      if (phase === 'Failed' || phase === 'Cancelled')
        throw new CommandError(exitCodes.badOutcome, `the roll is ${phase}`, {
          advice: 'the lines above say why; "berth host roll --resume" repeats the step that has failed',
        });
      return phase === 'Done';
    },
  });
}
