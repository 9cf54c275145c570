// `berth workload undo`: an earlier template again, at once, or as a plan by its hash.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { parseInteger } from '../options/units.ts';
import { type Format, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { printRollout } from './rollout-lines.ts';

interface UndoOptions {
  readonly to?: string;
  readonly dryRun?: true;
  readonly apply?: string;
  readonly output: Format;
}

export function undoCommand(cli: Cli): Command {
  return new Command('undo')
    .description('Return to an earlier revision, as a new revision')
    .argument('<workload>')
    .option('--to <revision>', 'default: the one before the current one')
    .option('--dry-run', 'only show the plan: what changes, and which copies are replaced')
    .option('--apply <hash>', 'carry out the plan with this hash, with the same options; refused when it has changed')
    .addOption(outputOption('value'))
    .action(async (name: string, { to, dryRun, apply, output }: UndoOptions, command: Command) => {
      if (apply !== undefined && dryRun) throw usageError('give only one of --dry-run and --apply');
      const body = {
        ...(to === undefined ? {} : { to: parseInteger('--to', to, { min: 1, max: Number.MAX_SAFE_INTEGER }) }),
        ...(apply === undefined ? {} : { apply }),
      };
      const { client, project } = await openSession(cli, command);
      const workload = await attempting(
        `undo workload "${name}"`,
        () => client.undoWorkload(name, body, { project, ...(dryRun ? { dryRun } : {}) }),
        {
          NotFound: '"berth workload ls" shows the workloads',
          InvalidRequest: `"berth workload history ${name}" shows the revisions`,
        },
      );
      if (dryRun) return printRollout(cli, output, workload, command);
      if (output === 'json' || output === 'yaml') return printValue(cli, output, workload);
      const { revision } = workload.status;
      cli.stdout.write(`workload ${name}: returning to an earlier template, as revision ${revision}\n`);
    });
}
