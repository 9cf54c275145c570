// `berth workload scale`: another number of copies, at once, or as a plan by its hash.

import { Command } from 'commander';
import type { ScalePlan } from '../../api/routes/workloads.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { parseInteger } from '../options/units.ts';
import { applyCommand } from '../print/apply-command.ts';
import { type Format, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { openSession } from '../session.ts';

interface ScaleOptions {
  readonly dryRun?: true;
  readonly apply?: string;
  readonly output: Format;
}

export function scaleCommand(cli: Cli): Command {
  return new Command('scale')
    .description('Change the number of copies')
    .argument('<workload>')
    .argument('<replicas>')
    .option('--dry-run', 'only show the plan: how many copies would be created, or which would be removed')
    .option('--apply <hash>', 'carry out the plan with this hash; refused when it has changed')
    .addOption(outputOption('value'))
    .action(async (name: string, count: string, { dryRun, apply, output }: ScaleOptions, command: Command) => {
      if (apply !== undefined && dryRun) throw usageError('give only one of --dry-run and --apply');
      const replicas = parseInteger('replicas', count, { min: 0, max: 100_000 });
      const { client, project } = await openSession(cli, command);
      const body = { replicas, ...(apply === undefined ? {} : { apply }) };
      const plan = await attempting(
        `scale workload "${name}"`,
        () => client.scaleWorkload(name, body, { project, ...(dryRun ? { dryRun } : {}) }),
        { NotFound: '"berth workload ls" shows the workloads' },
      );
      if (output === 'json' || output === 'yaml') return printValue(cli, output, plan);
      cli.stdout.write(visible(`${planLines(name, plan, applyCommand(command, plan.hash)).join('\n')}\n`, '\n'));
    });
}

function planLines(name: string, { replicas, create, remove, applied, hash }: ScalePlan, next: string): string[] {
  const would = applied ? '' : 'would be ';
  return [
    `${name}: ${would}scaled to ${replicas}`,
    ...(create > 0 ? [`  ${create} ${create === 1 ? 'copy' : 'copies'} ${would}created`] : []),
    ...remove.map((instance) => `  ${instance} ${would}removed`),
    ...(applied ? [] : ['', `Plan ${hash}. Apply it with:`, `  ${next}`]),
  ];
}
