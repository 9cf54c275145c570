// The plan of a rebalance as lines: which moves empty which hosts, and how to apply it.

import type { PlannedGuest } from '../../../api/plans/host-plan.ts';
import type { RebalancePlan } from '../../../api/plans/rebalance.ts';
import type { Cli } from '../../cli.ts';
import { type Column, coloursFor, tableLines } from '../../print/output.ts';
import { visible } from '../../print/terminal.ts';
import { planColumns } from '../host-drain.ts';

export const movesHelp =
  'replace: copies of workloads; live: also instances that move while they run; cold: also those that stop for their move';

type Row = PlannedGuest & { readonly from: string };

/** `next`: the command that applies the plan. */
export function planLines(
  cli: Cli,
  { hosts, needMigration, inUse, moves, hash }: RebalancePlan,
  next: string,
): string[] {
  const colours = coloursFor(cli.stdout, cli.environment);
  const rowsOf = (from: typeof hosts): Row[] =>
    from.flatMap(({ host, guests }) => guests.map((guest) => ({ ...guest, from: host })));
  const later = needMigration.length === 0 ? [] : migrationLines(rowsOf(needMigration));
  if (hosts.length === 0) return ['No host can be emptied by the moves that are permitted.', ...later];
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
      'These could leave their hosts only by a move that --moves does not permit; the plan does not touch them:',
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
