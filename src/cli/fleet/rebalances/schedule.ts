// `berth rebalance schedule POOL`: plans to use fewer hosts of a pool, at times.

import { Command } from 'commander';
import { rebalanceMoves } from '../../../api/plans/rebalance.ts';
import type { PoolRebalance } from '../../../api/resources/pool-rebalance.ts';
import type { Cli } from '../../cli.ts';
import { attempting, usageError } from '../../exit-codes.ts';
import { oneOf } from '../../options/place-options.ts';
import { parseDurationMs, parseInteger } from '../../options/units.ts';
import { replace } from '../../replace.ts';
import { openSession } from '../../session.ts';
import { movesHelp } from './plan-lines.ts';

interface Flags {
  readonly cron?: string;
  readonly timeZone?: string;
  readonly mode?: string;
  readonly pause?: true;
  readonly resume?: true;
  readonly off?: true;
  readonly budget?: string;
  readonly threshold?: string;
  readonly movesMax?: string;
  readonly coolDown?: string;
  readonly moves?: string;
  readonly emptiedMin?: string;
}

type Schedule = Partial<PoolRebalance> & Pick<PoolRebalance, 'cron'>;

/** Its options have no defaults here: what is not named stays as it is. */
export function scheduleCommand(cli: Cli): Command {
  return new Command('schedule')
    .description('Plan at times how fewer hosts of a pool could be used; show the plans, or carry them out')
    .argument('<pool>')
    .option('--cron <times>', 'make a plan at these times: "0 3 * * 6" is 3:00 on Saturdays')
    .option('--time-zone <zone>', 'of --cron: UTC, Europe/Berlin; default: UTC')
    .option('--mode <mode>', 'suggest: show the plan; apply: carry it out; default: suggest')
    .option('--moves <which>', `which instances may leave their hosts: ${movesHelp}; default: live`)
    .option('--budget <count>', 'moves in one plan; default: 20')
    .option('--threshold <percent>', 'leave hosts alone that are allocated beyond this; default: 50')
    .option('--moves-max <count>', 'moves at a time; default: 4')
    .option('--cool-down <duration>', 'do not move instances placed more recently than this; default: 6h')
    .option('--emptied-min <count>', 'move nothing when fewer hosts would be emptied; default: 1')
    .option('--pause', 'make no plans; moves in progress go on')
    .option('--resume', 'make plans again, at the next time')
    .option('--off', 'end the schedule; moves in progress go on')
    .action(async (name: string, _flags: unknown, command: Command) => {
      // The command above has some of the options too, and takes those that come before the name.
      const flags = givenFlags(command);
      const { client } = await openSession(cli, command);
      let text = '';
      await attempting(
        `schedule the rebalance of pool "${name}"`,
        () =>
          replace(client, {
            kind: 'pool',
            name,
            change({ spec: { rebalance: before, ...spec } }) {
              const schedule = scheduleOf(name, before, flags);
              text = textOf(schedule);
              if (schedule === undefined) return spec;
              return { ...spec, rebalance: schedule as PoolRebalance }; // the server adds the defaults
            },
          }),
        { NotFound: '"berth pool ls" shows the pools' },
      );
      cli.stdout.write(`${name} ${text}\n`);
    });
}

function givenFlags(command: Command): Flags {
  const flags: Record<string, unknown> = {};
  for (const called of [command.parent, command])
    for (const [key, value] of Object.entries(called?.opts() ?? {}))
      if (called?.getOptionValueSource(key) === 'cli') flags[key] = value;
  return flags;
}

function textOf(schedule: Schedule | undefined): string {
  if (schedule === undefined) return 'has no schedule any more';
  const { cron, paused, mode = 'suggest' } = schedule;
  return paused ? `pauses its schedule ${cron}` : `has the schedule ${cron}: ${mode}`;
}

function scheduleOf(name: string, before: PoolRebalance | undefined, flags: Flags): Schedule | undefined {
  const { off, pause, resume, cron = before?.cron, timeZone, mode, moves } = flags;
  if (Object.keys(flags).length === 0)
    throw usageError(`no change of the schedule is given`, `"berth rebalance show ${name}" shows it`);
  if (off) {
    if (Object.keys(flags).length > 1) throw usageError('--off excludes the other options');
    return undefined;
  }
  if (pause && resume) throw usageError('--pause excludes --resume');
  if (cron === undefined) throw usageError('name the times: --cron "0 3 * * *"');
  const schedule = {
    ...before,
    cron,
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(mode === undefined ? {} : { mode: oneOf('--mode', mode, ['suggest', 'apply']) }),
    ...(moves === undefined ? {} : { moves: oneOf('--moves', moves, rebalanceMoves) }),
    ...numbersOf(flags),
    ...(pause || resume ? { paused: pause === true } : {}),
  };
  return schedule;
}

function numbersOf({ budget, threshold, movesMax, coolDown, emptiedMin }: Flags): Partial<PoolRebalance> {
  return {
    ...(budget === undefined ? {} : { budget: parseInteger('--budget', budget, { min: 1, max: 500 }) }),
    ...(threshold === undefined
      ? {}
      : { thresholdPercent: parseInteger('--threshold', threshold, { min: 1, max: 100 }) }),
    ...(movesMax === undefined ? {} : { movesMax: parseInteger('--moves-max', movesMax, { min: 1, max: 100 }) }),
    ...(coolDown === undefined ? {} : { coolDownMs: parseDurationMs('--cool-down', coolDown) }),
    ...(emptiedMin === undefined
      ? {}
      : { emptiedMin: parseInteger('--emptied-min', emptiedMin, { min: 1, max: 100 }) }),
  };
}
