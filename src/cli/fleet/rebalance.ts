// `berth rebalance`: which hosts could be emptied, and by which moves; with --apply they are.

import { Command } from 'commander';
import { rebalanceMoves, type RebalanceOptions } from '../../api/plans/rebalance.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { parseDurationMs, parseInteger } from '../options/units.ts';
import { oneOf } from '../options/place-options.ts';
import { applyCommand } from '../print/apply-command.ts';
import { type Format, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { movesHelp, planLines } from './rebalances/plan-lines.ts';
import { scheduleCommand } from './rebalances/schedule.ts';
import { showCommand } from './rebalances/show.ts';

interface Flags {
  readonly pool?: string;
  readonly budget: string;
  readonly threshold: string;
  readonly movesMax: string;
  readonly coolDown: string;
  readonly moves: string;
  readonly emptiedMin: string;
  readonly apply?: string;
  readonly output: Format;
}

export function rebalanceCommand(cli: Cli): Command {
  return new Command('rebalance')
    .description('Show which lightly used hosts could be emptied; with --apply, empty them')
    .option('--pool <pool>', 'only hosts of this pool')
    .option('--budget <count>', 'moves in one plan', '20')
    .option('--threshold <percent>', 'leave hosts alone that are allocated beyond this', '50')
    .option('--moves-max <count>', 'moves at a time', '4')
    .option('--cool-down <duration>', 'do not move instances placed more recently than this', '1h')
    .option('--moves <which>', `which instances may leave their hosts: ${movesHelp}`, 'replace')
    .option('--emptied-min <count>', 'move nothing when fewer hosts would be emptied', '1')
    .option('--apply <hash>', 'carry out the plan with this hash, with the same options; refused when it has changed')
    .addOption(outputOption('value'))
    .action(async (flags: Flags, command: Command) => {
      const options = optionsOf(flags);
      const { apply, output } = flags;
      const { client } = await openSession(cli, command);
      await attempting('rebalance', async () => {
        const { plan, drains } = await client.rebalance(apply === undefined ? options : { ...options, apply });
        if (output === 'json' || output === 'yaml') return printValue(cli, output, plan ?? drains);
        if (plan)
          return void cli.stdout.write(`${planLines(cli, plan, applyCommand(command, plan.hash)).join('\n')}\n`);
        for (const { host } of drains ?? [])
          cli.stdout.write(`${host} is being emptied: berth host drain ${host} --watch\n`);
      });
    })
    .addCommand(showCommand(cli))
    .addCommand(scheduleCommand(cli));
}

function optionsOf({ pool, budget, threshold, movesMax, coolDown, moves, emptiedMin }: Flags): RebalanceOptions {
  return {
    ...(pool === undefined ? {} : { pool }),
    budget: parseInteger('--budget', budget, { min: 1, max: 500 }),
    thresholdPercent: parseInteger('--threshold', threshold, { min: 1, max: 100 }),
    movesMax: parseInteger('--moves-max', movesMax, { min: 1, max: 100 }),
    coolDownMs: parseDurationMs('--cool-down', coolDown),
    moves: oneOf('--moves', moves, rebalanceMoves),
    emptiedMin: parseInteger('--emptied-min', emptiedMin, { min: 1, max: 100 }),
  };
}
