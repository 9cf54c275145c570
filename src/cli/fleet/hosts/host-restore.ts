// `berth host restore`: the plan of what returns to a host after its maintenance, then the plan by its hash. The server carries it out.

import { Command } from 'commander';
import type { UserClient } from '../../../api/client/user-client.ts';
import type { PlannedGuest } from '../../../api/plans/host-plan.ts';
import type { HostRestore, HostRestorePlan, RestoreOptions } from '../../../api/plans/host-restore.ts';
import type { Cli } from '../../cli.ts';
import { attempting, CommandError, exitCodes, usageError } from '../../exit-codes.ts';
import { refuseNeedless } from '../../options/needless-options.ts';
import { age, parseDurationMs, parseInteger } from '../../options/units.ts';
import { applyCommand } from '../../print/apply-command.ts';
import { type Column, coloursFor, type Format, printValue, tableLines } from '../../print/output.ts';
import { outputOption } from '../../print/output-option.ts';
import { visible } from '../../print/terminal.ts';
import { openSession } from '../../session.ts';
import { doneText, drainColumns, planColumns, stepsOf } from '../host-drain.ts';
import { watchProgress } from './watch-progress.ts';

interface Flags {
  readonly apply?: string;
  readonly yes?: true;
  readonly movesMax: string;
  readonly deadline: string;
  readonly status?: true;
  readonly watch?: true;
  readonly cancel?: true;
  readonly output: Format;
}

const choices: readonly (keyof Flags)[] = ['movesMax', 'deadline'];

export function restoreCommand(cli: Cli): Command {
  return new Command('restore')
    .description('Show the plan to move back what drains have moved away from a host; with --apply carry it out')
    .argument('<host>')
    .option('--apply <hash>', 'carry out the plan with this hash, with the same options; refused when it has changed')
    .option('-y, --yes', 'carry out the plan as it is now')
    .option('--moves-max <count>', 'instances that return at a time', '2')
    .option('--deadline <duration>', 'end the restore after this time, even if instances have not returned', '1h')
    .option('--status', 'show the progress of the restore')
    .option('-w, --watch', 'show the progress of the restore until it ends')
    .option('--cancel', 'end the restore; what has returned stays')
    .addOption(outputOption('value'))
    .action(async (host: string, flags: Flags, command: Command) => {
      const { apply, yes, status, cancel } = flags;
      if ([apply, yes, status, cancel].filter((flag) => flag !== undefined).length > 1)
        throw usageError('give only one of --apply, --yes, --status and --cancel');
      if (cancel) refuseNeedless(command, [...choices, 'watch'], '--cancel');
      if (status) refuseNeedless(command, choices, '--status');
      const begins = apply !== undefined || yes === true;
      if (flags.watch && !begins) refuseNeedless(command, choices, '--watch without --apply');
      const options: RestoreOptions = {
        movesMax: parseInteger('--moves-max', flags.movesMax, { min: 1, max: 100 }),
        deadlineMs: parseDurationMs('--deadline', flags.deadline),
      };
      const { client } = await openSession(cli, command);
      await attempting(`restore host "${host}"`, () => restore(cli, client, { host, flags, options, command }), {
        NotFound: '"berth host ls" shows the hosts',
      });
    });
}

interface Asked {
  readonly host: string;
  readonly flags: Flags;
  readonly options: RestoreOptions;
  readonly command: Command;
}

async function restore(cli: Cli, client: UserClient, { host, flags, options, command }: Asked): Promise<void> {
  const { apply, yes, cancel, status, watch, output } = flags;
  if (cancel) return printRestore(cli, output, await client.cancelRestore(host));
  if (apply === undefined && (watch || status) && !yes) {
    if (watch) return watchRestore(cli, client, host, output);
    return printRestore(cli, output, await client.showRestore(host));
  }
  const plan = apply === undefined ? (await client.restoreHost(host, options)).plan : undefined;
  const hash = apply ?? (yes && isToBegin(plan) ? plan.hash : undefined);
  if (hash === undefined) return plan && printPlan(cli, output, plan, applyCommand(command, plan.hash));
  const { restore: begun } = await client.restoreHost(host, { ...options, apply: hash });
  if (watch) return watchRestore(cli, client, host, output);
  if (begun) await printRestore(cli, output, begun);
}

function isToBegin(plan: HostRestorePlan | undefined): plan is HostRestorePlan {
  return plan !== undefined && plan.guests.length > 0;
}

async function printPlan(cli: Cli, output: Format, plan: HostRestorePlan, next: string): Promise<void> {
  if (output === 'json' || output === 'yaml') return printValue(cli, output, plan);
  const { host, hash, guests, options } = plan;
  const lines =
    guests.length === 0
      ? [visible(`Nothing returns to host ${host}: what drains have moved away is back, or gone.`)]
      : [
          visible(`Plan to restore host ${host}: at most ${options.movesMax} return at a time.`),
          '',
          ...tableLines(columns, guests, { colours: coloursFor(cli.stdout, cli.environment) }),
          '',
          `Instances that have not returned after ${age(options.deadlineMs)} stay where they are.`,
          '',
          `Plan ${hash}. Apply it with:`,
          visible(`  ${next}`),
        ];
  cli.stdout.write(`${lines.join('\n')}\n`);
}

const columns: readonly Column<PlannedGuest>[] = planColumns.map((column) =>
  column.header === 'TO' ? { header: 'FROM', value: ({ from }) => from ?? '' } : column,
);

async function printRestore(cli: Cli, output: Format, restored: HostRestore): Promise<void> {
  if (output === 'json' || output === 'yaml') return printValue(cli, output, restored);
  const { host, phase, guests, message } = restored;
  const colours = coloursFor(cli.stdout, cli.environment);
  const why = message === undefined ? '' : ` (${message})`;
  cli.stdout.write(
    `${[visible(`${host}: ${phase}${why}, ${doneText(guests)}`), ...tableLines(drainColumns, guests, { colours })].join('\n')}\n`,
  );
}

/** Until the restore has ended. Throws when something has not returned. */
function watchRestore(cli: Cli, client: UserClient, host: string, output: Format): Promise<void> {
  return watchProgress(cli, {
    look: () => client.showRestore(host),
    steps: stepsOf,
    print: (now) => printRestore(cli, output, now),
    isOver({ phase }) {
      if (phase === 'Incomplete' || phase === 'Cancelled')
        throw new CommandError(exitCodes.badOutcome, `not all of host "${host}" has returned`, {
          advice: `the lines above say why; "berth host restore ${host}" plans what is left`,
        });
      return phase === 'Restored';
    },
  });
}
