// The plan of an update of a workload in words: what changes, and what happens to the copies.

import type { Command } from 'commander';
import type { RolloutPlan } from '../../api/plans/rollout-plan.ts';
import { fieldLine } from '../apply/print-plan.ts';
import type { Cli } from '../cli.ts';
import { CommandError, exitCodes } from '../exit-codes.ts';
import { applyCommand } from '../print/apply-command.ts';
import { type Format, printValue } from '../print/output.ts';
import { visible } from '../print/terminal.ts';
import { copyLines } from './copy-lines.ts';

/** `called`: the command that showed it. */
export async function printRollout(
  cli: Cli,
  output: Format,
  { rollout }: { readonly rollout?: RolloutPlan },
  called: Command,
): Promise<void> {
  if (!rollout)
    throw new CommandError(exitCodes.internal, 'the server answered without a plan', {
      advice: 'it is of an older version: upgrade it first',
    });
  if (output === 'json' || output === 'yaml') return printValue(cli, output, rollout);
  cli.stdout.write(visible(`${rolloutLines(rollout, applyCommand(called, rollout.hash)).join('\n')}\n`, '\n'));
}

function rolloutLines(plan: RolloutPlan, next: string): string[] {
  const { verb, workload, revision, changes, hash } = plan;
  const number =
    revision.after === revision.before ? 'no new revision' : `revision ${revision.before} → ${revision.after}`;
  return [
    `Plan to ${verb} workload ${workload}: ${number}.`,
    ...(changes.length === 0 ? ['    nothing changes'] : changes.map(fieldLine)),
    ...copyLines(plan).map((line) => `  ${line}`),
    '',
    `Plan ${hash}. Apply it with:`,
    `  ${next}`,
  ];
}
