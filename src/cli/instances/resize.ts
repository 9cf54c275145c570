// `berth resize`: the plan to give an instance other CPUs, memory or a larger disk, then the plan by its hash.

import { Command } from 'commander';
import type { ResizeOptions, ResizePlan } from '../../api/plans/resize-plan.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandExit, exitCodes, usageError } from '../exit-codes.ts';
import { amountText, parseGiB, parseInteger, parseMemoryMiB } from '../options/units.ts';
import { applyCommand } from '../print/apply-command.ts';
import { type Format, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { openSession } from '../session.ts';
import { type Judge, waitForInstance } from './wait.ts';

interface Flags {
  readonly cpus?: string;
  readonly memory?: string;
  readonly disk?: string;
  readonly size?: string;
  readonly apply?: string;
  readonly yes?: true;
  readonly wait?: true;
  readonly output: Format;
}

export function resizeCommand(cli: Cli): Command {
  return new Command('resize')
    .description('Show the plan to resize an instance; with --apply carry it out, which restarts a running instance')
    .argument('<instance>')
    .option('--cpus <count>', 'virtual CPUs')
    .option('--memory <amount>', 'memory: 2GiB')
    .option('--disk <amount>', 'disk: 20GiB; it only grows')
    .option('--size <size>', 'a named amount; the options above replace parts of it')
    .option('--apply <hash>', 'carry out the plan with this hash, with the same options; refused when it has changed')
    .option('-y, --yes', 'carry out the plan as it is now')
    .option('-w, --wait', 'wait until it is done')
    .addOption(outputOption('value'))
    .action(async (name: string, flags: Flags, command: Command) => {
      const { apply, yes, wait, output } = flags;
      if (apply !== undefined && yes) throw usageError('give only one of --apply and --yes');
      const options = optionsOf(flags);
      if (Object.keys(options).length === 0) throw usageError('give --cpus, --memory, --disk or --size');
      const session = await openSession(cli, command);
      const { client, project } = session;
      await attempting(`resize instance "${name}"`, async () => {
        let { plan, begun } = await client.resizeInstance(
          name,
          { project },
          { ...options, ...(apply ? { apply } : {}) },
        );
        if (yes && plan.obstacles.length === 0)
          ({ plan, begun } = await client.resizeInstance(name, { project }, { ...options, apply: plan.hash }));
        if (begun && wait)
          await waitForInstance(cli, session, { id: plan.instanceId, name, judge: untilResized(name) });
        const lines = begun
          ? [`${name} ${wait ? 'is' : 'is being'} resized`]
          : planLines(plan, applyCommand(command, plan.hash));
        if (output === 'json' || output === 'yaml') await printValue(cli, output, plan);
        else cli.stdout.write(`${lines.map((line) => visible(line)).join('\n')}\n`);
        if (!begun && plan.obstacles.length > 0) throw new CommandExit(exitCodes.badOutcome);
      });
    });
}

function optionsOf({ cpus, memory, disk, size }: Flags): ResizeOptions {
  return {
    ...(cpus === undefined ? {} : { cpus: parseInteger('--cpus', cpus, { min: 1, max: 1024 }) }),
    ...(memory === undefined ? {} : { memoryMiB: parseMemoryMiB(memory, '--memory') }),
    ...(disk === undefined ? {} : { diskGiB: parseGiB('--disk', disk) }),
    ...(size === undefined ? {} : { size }),
  };
}

function planLines(
  { instance, host, before, after, restarts, obstacles, wouldFit, hash }: ResizePlan,
  next: string,
): string[] {
  const changes = Object.keys({ ...before, ...after })
    .filter((of) => before[of] !== after[of])
    .map((of) => `  ${amountText(of, before[of] ?? 0)} → ${amountText(of, after[of] ?? 0)}`);
  if (obstacles.length > 0)
    return [
      `Instance ${instance} cannot be resized:`,
      ...obstacles.map(({ code, message }) => `  ${code}: ${message}`),
      ...(wouldFit.length === 0 ? [] : [`These hosts have the room: ${wouldFit.join(', ')}.`]),
    ];
  return [
    `Plan to resize instance ${instance} on ${host}${restarts ? ': it is stopped, and starts again' : ''}.`,
    ...(changes.length === 0 ? ['  nothing changes'] : changes),
    '',
    `Plan ${hash}. Apply it with:`,
    `  ${next}`,
  ];
}

/** Done when its host has done it, and it runs again or is stopped. */
function untilResized(name: string): Judge<'instance', true> {
  return (instance) => {
    if (!instance) return { failed: `instance "${name}" was removed` };
    const { phase, resize, guest } = instance.status;
    if (phase === 'Failed' || phase === 'Exited')
      return { failed: `instance "${name}" is ${phase}`, advice: `berth events ${name}` };
    if (resize?.pending !== true && (phase === 'Running' || phase === 'Stopped')) return { done: true };
    return { waiting: guest?.progress ?? phase };
  };
}
