// `berth reserve`: holds room for a limited time without an instance. `berth run --task NAME` then uses that room.

import { Command } from 'commander';
import type { Task } from '../../api/resources/task.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, exitCodes, Interrupted, usageError } from '../exit-codes.ts';
import { follow } from '../print/follow.ts';
import { conditionOf } from '../instances/instance-view.ts';
import { type Format, printNames, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { type PlaceOptions, placeOf, withPlaceOptions, withRoomOptions } from '../options/place-options.ts';
import { openSession, type Session } from '../session.ts';
import { age, parseDurationMs } from '../options/units.ts';

interface ReserveOptions extends PlaceOptions {
  readonly for: string;
  readonly name?: string;
  readonly image?: string;
  readonly wait?: true;
  readonly timeout?: string;
  readonly output: Format;
}

export function reserveCommand(cli: Cli): Command {
  const command = new Command('reserve')
    .description('Reserve resources for a limited time, without an instance')
    .requiredOption('--for <duration>', 'duration, counted from the reservation: 10m, 2h')
    .option('-n, --name <name>', 'name of the task; default: made from the time')
    .option('--image <image>', 'only where this image can run');
  return withPlaceOptions(withRoomOptions(command))
    .option('-w, --wait', 'wait until the resources are reserved')
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .addOption(outputOption('list'))
    .action(async (options: ReserveOptions, called: Command) => {
      const ttlMs = parseDurationMs('--for', options.for);
      if (ttlMs < 1000)
        throw usageError(`--for cannot be "${options.for}"`, 'reserve for at least one second: 90s, 5m');
      const timeoutMs = options.timeout === undefined ? undefined : parseDurationMs('--timeout', options.timeout);
      const spec = { ...placeOf(options), ...(options.image === undefined ? {} : { image: options.image }), ttlMs };
      const session = await openSession(cli, called);
      const name = options.name ?? `hold-${Math.floor(cli.clock.nowMs()).toString(36)}`;
      const made = await attempting(
        'reserve',
        () => session.client.create('task', { metadata: { name, project: session.project }, spec }),
        { AlreadyExists: `remove the existing one: berth task rm ${name}` },
      );
      const task = options.wait ? await untilPlaced(cli, session, made, timeoutMs) : made;
      if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, task);
      if (!options.wait || options.output === 'name') return printNames(cli, [task]);
      const { host, heldUntilMs = 0 } = task.status;
      cli.stdout.write(
        `${name} has resources reserved on ${host ?? '?'} for ${age(heldUntilMs - cli.clock.nowMs())}; berth run IMAGE --task ${name}\n`,
      );
    });
}

async function untilPlaced(
  cli: Cli,
  { client, project }: Session,
  made: Task,
  timeoutMs: number | undefined,
): Promise<Task> {
  const { id, name } = made.metadata;
  const overdue = new AbortController();
  const timer = timeoutMs === undefined ? undefined : cli.clock.setTimer(timeoutMs, () => overdue.abort());
  let last = '';
  try {
    const signal = AbortSignal.any([cli.interruption(), overdue.signal]);
    for await (const change of follow(cli, client, 'task', { project }, signal)) {
      const resources = change.type === 'sync' ? change.items : change.type === 'put' ? [change.resource] : [];
      const task = resources.find(({ metadata }) => metadata.id === id);
      if (task?.status.phase === 'Placed') return task;
      if (task?.status.phase === 'Pending') last = conditionOf(task.status.conditions, 'Scheduled')?.message ?? '';
      const gone = change.type === 'delete' && change.name === name;
      if (gone || (task && task.status.phase !== 'Pending') || (change.type === 'sync' && !task))
        throw new CommandError(exitCodes.badOutcome, `task "${name}" ended before its placement was seen`);
    }
    throw new Interrupted();
  } catch (error) {
    if (!(error instanceof Interrupted) || !overdue.signal.aborted) throw error;
    throw new CommandError(exitCodes.timedOut, `task "${name}" could not be placed: ${last}`, {
      advice: `it keeps waiting; see "berth task ls", or cancel it with "berth task rm ${name}"`,
    });
  } finally {
    timer?.cancel();
  }
}
