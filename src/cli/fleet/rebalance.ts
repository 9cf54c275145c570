// `berth rebalance`: which hosts could be emptied, and by which moves; with --apply they are.

import { Command } from 'commander';
import type { RebalanceOptions, RebalancePlan } from '../../api/plans/rebalance.ts';
import type { PlannedGuest } from '../../api/plans/host-plan.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { parseDurationMs, parseInteger } from '../options/units.ts';
import { applyCommand } from '../print/apply-command.ts';
import { type Column, coloursFor, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { openSession } from '../session.ts';
import { planColumns } from './host-drain.ts';

interface Flags {
  readonly pool?: string;
  readonly budget: string;
  readonly threshold: string;
  readonly movesMax: string;
  readonly coolDown: string;
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
    });
}

function optionsOf({ pool, budget, threshold, movesMax, coolDown }: Flags): RebalanceOptions {
  return {
    ...(pool === undefined ? {} : { pool }),
    budget: parseInteger('--budget', budget, { min: 1, max: 500 }),
    thresholdPercent: parseInteger('--threshold', threshold, { min: 1, max: 100 }),
    movesMax: parseInteger('--moves-max', movesMax, { min: 1, max: 100 }),
    coolDownMs: parseDurationMs('--cool-down', coolDown),
  };
}

type Row = PlannedGuest & { readonly from: string };

function planLines(cli: Cli, { hosts, needMigration, inUse, moves, hash }: RebalancePlan, next: string): string[] {
  const colours = coloursFor(cli.stdout, cli.environment);
  const rowsOf = (from: typeof hosts): Row[] =>
    from.flatMap(({ host, guests }) => guests.map((guest) => ({ ...guest, from: host })));
  const later = needMigration.length === 0 ? [] : migrationLines(rowsOf(needMigration));
  if (hosts.length === 0) return ['No host can be emptied by moving copies of workloads.', ...later];
  return [
    `${moves} moves empty ${hosts.length} of ${inUse.before} hosts in use: ${hosts.map(({ host }) => host).join(', ')}.`,
    '',
    ...tableLines(columns, rowsOf(hosts), { colours }),
    ...later,
    '',
    `Plan ${hash}. Each host is closed while it is emptied, and then opened. Apply it with:`,
    visible(`  ${next}`),
  ];

  function migrationLines(rows: readonly Row[]): string[] {
    return [
      '',
      'These could leave their hosts only by a migration; the plan does not touch them:',
      ...tableLines(columns.slice(0, 2), rows, { colours }),
    ];
  }
}

const [name, ...others] = planColumns;
const columns: readonly Column<Row>[] = [
  ...(name ? [name] : []),
  { header: 'FROM', value: ({ from }) => from },
  ...others,
];
