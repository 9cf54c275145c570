// `berth host drain` and `berth host evacuate`: the plan first, then the plan by its hash.

import { Command } from 'commander';
import {
  type DrainOptions,
  guestActionText,
  type HostDrain,
  type HostPlan,
  type PlannedGuest,
  type Survival,
} from '../../api/plans/host-plan.ts';
import type { UserClient } from '../../api/client/user-client.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, exitCodes, usageError } from '../exit-codes.ts';
import { refuseNeedless } from '../options/needless-options.ts';
import { amountText, age, parseDurationMs, parseInteger } from '../options/units.ts';
import { watchProgress } from './hosts/watch-progress.ts';
import { applyCommand } from '../print/apply-command.ts';
import { type Colours, type Column, coloursFor, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { openSession } from '../session.ts';

const advice = { NotFound: '"berth host ls" shows the hosts' } as const;
interface DrainFlags {
  readonly apply?: string;
  readonly stopOthers?: true;
  readonly movesMax: string;
  readonly deadline: string;
  readonly atDeadline: string;
  readonly thenOpen?: true;
  readonly status?: true;
  readonly watch?: true;
  readonly cancel?: true;
  readonly output: Format;
}

/** What a plan depends on. */
const choices: readonly (keyof DrainFlags)[] = ['stopOthers', 'movesMax', 'deadline', 'atDeadline', 'thenOpen'];

export function drainCommand(cli: Cli): Command {
  return new Command('drain')
    .description('Show the plan to empty a host; with --apply carry it out')
    .argument('<host>')
    .option('--apply <hash>', 'carry out the plan with this hash, with the same options; refused when it has changed')
    .option('--stop-others', 'stop the instances that cannot move; their disks stay')
    .option('--moves-max <count>', 'instances that leave at a time', '2')
    .option('--deadline <duration>', 'end the drain after this time, even if instances remain', '1h')
    .option('--at-deadline <action>', 'what happens then to instances that still run: leave or stop', 'leave')
    .option('--then-open', 'resume the host when the drain ends')
    .option('--status', 'show the progress of the drain')
    .option('-w, --watch', 'show the progress of the drain until it ends')
    .option('--cancel', 'end the drain and resume the host')
    .addOption(outputOption('value'))
    .action(async (host: string, flags: DrainFlags, command: Command) => {
      const verbs = [flags.apply, flags.status, flags.cancel].filter((flag) => flag !== undefined);
      if (verbs.length > 1) throw usageError('give only one of --apply, --status and --cancel');
      if (flags.cancel) refuseNeedless(command, [...choices, 'watch'], '--cancel');
      if (flags.status) refuseNeedless(command, choices, '--status');
      if (flags.watch && flags.apply === undefined) refuseNeedless(command, choices, '--watch without --apply');
      const options = optionsOf(flags);
      const { client } = await openSession(cli, command);
      const verb = flags.cancel ? 'cancel the drain of' : flags.status ? 'show the drain of' : 'drain';
      const work = () => drain(cli, client, { host, flags, options, command });
      await attempting(`${verb} host "${host}"`, work, verb === 'drain' ? advice : {});
    });
}

interface Asked {
  readonly host: string;
  readonly flags: DrainFlags;
  readonly options: DrainOptions;
  readonly command: Command;
}

async function drain(cli: Cli, client: UserClient, { host, flags, options, command }: Asked): Promise<void> {
  const { output, apply, cancel, status, watch } = flags;
  if (cancel) return printDrain(cli, output, await client.cancelDrain(host));
  if (apply !== undefined) {
    const { drain: begun } = await client.drainHost(host, { ...options, apply });
    if (!watch) return begun && printDrain(cli, output, begun);
  }
  if (watch) return watchDrain(cli, client, host, output);
  if (status) return printDrain(cli, output, await client.showDrain(host));
  const { plan } = await client.drainHost(host, options);
  if (plan) await printPlan(cli, output, plan, applyCommand(command, plan.hash));
}

function optionsOf({ stopOthers, movesMax, deadline, atDeadline, thenOpen }: DrainFlags): DrainOptions {
  if (atDeadline !== 'leave' && atDeadline !== 'stop')
    throw usageError(`--at-deadline must be leave or stop, not "${atDeadline}"`);
  return {
    stopOthers: stopOthers === true,
    movesMax: parseInteger('--moves-max', movesMax, { min: 1, max: 100 }),
    deadlineMs: parseDurationMs('--deadline', deadline),
    atDeadline,
    ...(thenOpen ? { thenOpen } : {}),
  };
}

export function evacuateCommand(cli: Cli): Command {
  return new Command('evacuate')
    .description('Show what giving up a host that never returns would do; with --apply the host is removed')
    .argument('<host>')
    .option('--apply <hash>', 'carry out the plan with this hash; refused when it has changed')
    .addOption(outputOption('value'))
    .action(async (host: string, { apply, output }: { apply?: string; output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      await attempting(
        `evacuate host "${host}"`,
        async () => {
          const { plan } = await client.evacuateHost(host, apply === undefined ? {} : { apply });
          if (plan) return printPlan(cli, output, plan, applyCommand(command, plan.hash));
          cli.stdout.write(`${host} removed\n`);
        },
        advice,
      );
    });
}

async function printPlan(cli: Cli, output: Format, plan: HostPlan, next: string): Promise<void> {
  if (output === 'json' || output === 'yaml') return printValue(cli, output, plan);
  cli.stdout.write(`${planLines(plan, coloursFor(cli.stdout, cli.environment), next).join('\n')}\n`);
}

function planLines(plan: HostPlan, colours: Colours, next: string): string[] {
  const { host, guests, room, before, after } = plan;
  const what =
    plan.verb === 'drain'
      ? `Plan to drain host ${host}: it is closed first; at most ${plan.options.movesMax} leave at a time.`
      : `Plan to give up host ${host}: it is removed, with everything that exists only there.`;
  return [
    visible(what),
    '',
    ...(guests.length === 0 ? ['The host is empty.'] : tableLines(planColumns, guests, { colours })),
    '',
    `Room left on the other hosts: ${roomText(room)}`,
    survivalText('Now', before),
    survivalText('Afterwards', after),
    ...(plan.verb === 'drain' ? [deadlineText(plan.options)] : []),
    '',
    `Plan ${plan.hash}, valid for ${age(plan.expiresAtMs - plan.madeAtMs)}. Apply it with:`,
    visible(`  ${next}`),
  ];
}

function deadlineText({ deadlineMs, atDeadline }: DrainOptions): string {
  const action = atDeadline === 'stop' ? 'are stopped' : 'stay here, and the host stays closed';
  return `Instances that still run after ${age(deadlineMs)} ${action}.`;
}

function roomText(room: HostPlan['room']): string {
  const parts = Object.entries(room).map(
    ([resourceClass, { free, capacity }]) =>
      `${amountText(resourceClass, free)} of ${amountText(resourceClass, capacity)}`,
  );
  return parts.length === 0 ? 'none' : parts.join(', ');
}

export function survivalText(when: string, { survives, hosts, notShown, notShownCount }: Survival): string {
  if (survives) return `${when} the fleet survives the loss of any one host (${hosts} with instances).`;
  const more = notShownCount > notShown.length ? ', …' : '';
  return visible(
    `${when} the loss of one of these hosts may leave instances without a place: ${notShown.join(', ')}${more} (${notShownCount} of ${hosts} with instances).`,
  );
}

export const planColumns: readonly Column<PlannedGuest>[] = [
  {
    header: 'NAME',
    value: ({ project, name, kind }) =>
      `${project === 'default' ? '' : `${project}/`}${name}${kind === 'instance' ? '' : ` (${kind})`}`,
  },
  {
    header: 'ACTION',
    value: guestActionText,
    paint: (cell, { action }, colours) => (action === 'stays' || action === 'fails' ? colours.red(cell) : cell),
  },
  { header: 'TO', value: ({ target }) => target ?? '' },
  { header: 'WHY', value: ({ reasons }) => reasons.map(({ message }) => message).join('; ') },
];

export const drainColumns: readonly Column<PlannedGuest>[] = [
  ...planColumns.slice(0, 2),
  { header: 'STATE', value: ({ progress }) => progress ?? '' },
  { header: 'WHY', value: ({ message, reasons }) => message ?? reasons.map((each) => each.message).join('; ') },
];

async function printDrain(cli: Cli, output: Format, drained: HostDrain): Promise<void> {
  if (output === 'json' || output === 'yaml') return printValue(cli, output, drained);
  const { host, phase, guests } = drained;
  const colours = coloursFor(cli.stdout, cli.environment);
  cli.stdout.write(
    `${[visible(`${host}: ${phase}, ${doneText(guests)}`), ...tableLines(drainColumns, guests, { colours })].join('\n')}\n`,
  );
}

export function doneText(guests: readonly PlannedGuest[]): string {
  const done = guests.filter(({ progress }) => progress === 'done').length;
  return `${done} of ${guests.length} done`;
}

/** Until the drain has ended. Throws when something still runs on the host. */
function watchDrain(cli: Cli, client: UserClient, host: string, output: Format): Promise<void> {
  return watchProgress(cli, {
    look: () => client.showDrain(host),
    steps: stepsOf,
    print: (now) => printDrain(cli, output, now),
    isOver({ phase }) {
      if (phase === 'Incomplete')
        throw new CommandError(exitCodes.badOutcome, `host "${host}" is not empty`, {
          advice: 'the lines above say what still runs there, and why',
        });
      return phase !== 'Draining';
    },
  });
}

export function stepsOf({ phase, guests }: Pick<HostDrain, 'guests'> & { readonly phase: string }): unknown {
  return [phase, guests.map(({ progress }) => progress)];
}
