// `berth plan run IMAGE`: what `berth run` with the same flags would do: the chosen host, or why the instance would
// wait.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, exitCodes } from '../exit-codes.ts';
import { factLines, hostsLines, nearestLines, wholeOf } from './explain.ts';
import { coloursFor, type Format, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { type SpecOptions, specOf, withSpecOptions } from './run.ts';
import { openSession } from '../session.ts';
import { visible } from '../print/terminal.ts';
import { parseLabels } from '../options/units.ts';

interface PlanOptions extends SpecOptions {
  readonly name?: string;
  readonly all?: true;
  readonly output: Format;
}

export function planCommand(cli: Cli): Command {
  return new Command('plan').description('Show what a command would do, without doing it').addCommand(runCommand(cli));
}

function runCommand(cli: Cli): Command {
  return withSpecOptions(new Command('run').description('Show where an instance would be placed, or why it would wait'))
    .option('-n, --name <name>', 'name of the instance; default: made from the image')
    .option('-a, --all', 'every host, not only the first 20')
    .addOption(outputOption('value'))
    .action(async (image: string, options: PlanOptions, command: Command) => {
      const spec = await specOf(cli, image, options);
      const { client, project } = await openSession(cli, command);
      const labels = parseLabels('--label', options.label);
      const metadata = { ...(options.name === undefined ? {} : { name: options.name }), project, labels };
      const planned = await attempting(`plan "${image}"`, async () => {
        const first = await client.plan({ metadata, spec }, options.all ? { limit: 0 } : {});
        if (!options.all) return first;
        const explanation = await wholeOf(
          async (page) => (await client.plan({ metadata, spec }, page)).explanation,
          true,
        );
        return { ...first, explanation };
      });
      const { explanation } = planned;
      const placed = explanation.summary.startsWith('fits on '); // possibly after a preemption
      if (options.output === 'json' || options.output === 'yaml') await printValue(cli, options.output, planned);
      else {
        const colours = coloursFor(cli.stdout, cli.environment);
        const summary = placed ? `would be placed: it ${explanation.summary}` : `would wait: ${explanation.summary}`;
        const lines = [
          `${colours.bold(visible(explanation.instance))} ${visible(summary)}`,
          ...factLines(explanation),
          ...(explanation.preemption ? [] : nearestLines(explanation)),
          ...hostsLines(explanation, colours),
        ];
        cli.stdout.write(`${lines.join('\n')}\n`);
      }
      if (!placed && spec.powerState !== 'stopped')
        throw new CommandError(exitCodes.badOutcome, 'it would not be placed now');
    });
}
