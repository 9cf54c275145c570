// `berth rebalance show POOL`: the schedule of a pool, what its last time decided, and the plan as it is now.

import { Command } from 'commander';
import type { Pool } from '../../../api/resources/pool.ts';
import { type PoolRebalance, rebalanceOptionsOf } from '../../../api/resources/pool-rebalance.ts';
import type { Cli } from '../../cli.ts';
import { attempting, usageError } from '../../exit-codes.ts';
import { age } from '../../options/units.ts';
import { type Format, printValue } from '../../print/output.ts';
import { applyCommand } from '../../print/apply-command.ts';
import { outputOption } from '../../print/output-option.ts';
import { openSession } from '../../session.ts';
import { planLines } from './plan-lines.ts';

interface Flags {
  readonly apply?: string;
  readonly output: Format;
}

export function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show the schedule of a pool and its plan as it is now; with --apply, carry it out')
    .argument('<pool>')
    .option('--apply <hash>', 'carry out the plan with this hash; refused when it has changed')
    .addOption(outputOption('value'))
    .action(async (name: string, _flags: unknown, command: Command) => {
      const { apply, output } = command.optsWithGlobals<Flags>(); // the command above has both options too
      const { client } = await openSession(cli, command);
      await attempting(
        `show the rebalance of pool "${name}"`,
        async () => {
          const pool = await client.get('pool', name);
          const schedule = pool.spec.rebalance;
          if (schedule === undefined)
            throw usageError(
              `pool "${name}" has no schedule`,
              `set one: berth rebalance schedule ${name} --cron "0 3 * * *"`,
            );
          const options = rebalanceOptionsOf(name, schedule);
          const { plan, drains } = await client.rebalance(apply === undefined ? options : { ...options, apply });
          if (output === 'json' || output === 'yaml')
            return printValue(cli, output, plan ? { schedule, status: pool.status.rebalance, plan } : drains);
          if (plan) {
            const lines = planLines(cli, plan, applyCommand(command, plan.hash));
            return void cli.stdout.write(`${[...scheduleLines(pool, schedule, cli), '', ...lines].join('\n')}\n`);
          }
          for (const { host } of drains ?? [])
            cli.stdout.write(`${host} is being emptied: berth host drain ${host} --watch\n`);
        },
        { NotFound: '"berth pool ls" shows the pools' },
      );
    });
}

function scheduleLines({ metadata, status }: Pool, { cron, timeZone, mode, paused }: PoolRebalance, cli: Cli) {
  const nowMs = cli.clock.nowMs();
  const { nextMs, last } = status.rebalance ?? {};
  const next = paused
    ? 'paused'
    : nextMs === undefined
      ? 'no time ahead'
      : `next in ${age(Math.max(0, nextMs - nowMs))}`;
  return [
    `pool ${metadata.name}: ${mode} at ${cron} (${timeZone}), ${next}`,
    ...(last === undefined
      ? []
      : [`last: ${age(Math.max(0, nowMs - last.atMs))} ago: ${last.outcome}: ${last.message}`]),
  ];
}
