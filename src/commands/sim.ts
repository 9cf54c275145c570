// `berth sim`: runs the simulator. One seed draws a fleet, its work and its misfortunes; the real parts must withstand them.

import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { CommandError } from '../cli/exit-codes.ts';
import { parseInteger } from '../cli/units.ts';

interface SimFlags {
  readonly seeds: string;
  readonly seed: string;
  readonly plant?: string;
  readonly twice?: true;
  readonly verbose?: true;
  readonly json?: true;
}

export function simCommand(cli: Cli): Command {
  return new Command('sim')
    .description(
      'Run real control planes and agents in a false world drawn from seeds, and check what must always hold',
    )
    .option('--seeds <count>', 'how many', '200')
    .option('--seed <number>', 'the first one', '1')
    .option('--plant <bug>', 'break something on purpose: it must be found (drop-ledger-condition)')
    .option('--twice', 'run every seed twice and compare; else only the first few')
    .option('--verbose', 'a line for each run')
    .option('--json', 'one JSON object a line')
    .action(async ({ seeds, seed, plant, twice, verbose, json }: SimFlags) => {
      const { runSim } = await import('../sim/run.ts');
      const exitCode = await runSim(
        {
          seeds: parseInteger('--seeds', seeds, { min: 1, max: 10_000_000 }),
          firstSeed: parseInteger('--seed', seed, { min: 0, max: 2 ** 32 - 1 }),
          checkDeterminism: twice === true,
          verbose: verbose === true,
          json: json === true,
          ...(plant === undefined ? {} : { plant }),
        },
        cli.stdout,
      );
      if (exitCode !== 0)
        throw new CommandError(exitCode, 'the simulation did not go as it must; the lines above say where');
    });
}
