// `berth sim`: runs the simulator. Each seed draws a fleet, its work and its faults; the real parts must withstand them. Bugs are planted by
// `npm run sim -- --museum` only (scripts/sim.ts), as that changes the sources.

import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { CommandError, exitCodes, Interrupted, usageError } from '../cli/exit-codes.ts';
import { parseInteger } from '../cli/options/units.ts';

interface SimFlags {
  readonly seeds?: string;
  readonly seed: string;
  readonly jobs?: string;
  readonly once?: true;
  readonly twice?: true;
  readonly keep?: boolean;
  readonly shrink: boolean;
  readonly scenario?: string;
  readonly without?: string;
  readonly with?: string;
  readonly hosts?: string;
  readonly servers?: string;
  readonly tenants?: string;
  readonly storm?: string;
  readonly large?: true;
  readonly verbose?: true;
  readonly json?: true;
}

const seedsDefault = '200';
const fleetSeedsDefault = '2';

export function simCommand(cli: Cli): Command {
  return new Command('sim')
    .description('Run real control planes and agents in a simulated world drawn from seeds, and check the invariants')
    .option('--seeds <count>', `number of seeds (default: ${seedsDefault})`)
    .option('--seed <number>', 'first seed', '1')
    .option('--jobs <count>', 'processes at once (default: one for each core)')
    .option('--twice', 'run every seed twice and compare (the default)')
    .option('--once', 'run every seed once')
    .option('--keep', 'write failing seeds to src/sim/batch/seeds.txt (the default in a checkout, except under CI)')
    .option('--no-keep', 'do not write them')
    .option('--no-shrink', 'do not search for smaller failing runs')
    .option(
      '--without <kinds>',
      'faults, disturbances and unusual states to leave out: driver-slow,store-unknown,unusual-look-late; restored: no restore at the end',
    )
    .option(
      '--scenario <name>',
      'focus every run on one subject: host-loss, rolling, drain, migrate, resize, warm, spares',
    )
    .option('--with <kinds>', 'faults that happen often in every run')
    .option('--hosts <count>', 'at most this many hosts')
    .option('--servers <count>', 'at most this many control planes')
    .option('--tenants <count>', 'at most this many tenants')
    .option('--storm <seconds>', 'longest storm of faults')
    .option('--large', 'runs of 2,000 hosts')
    .option('--verbose', 'print a line per run')
    .option('--json', 'print one JSON object per line')
    .action((flags: SimFlags) => run(cli, flags));
}

async function run(cli: Cli, flags: SimFlags): Promise<void> {
  const signal = cli.interruption();
  const many = { min: 1, max: 10_000_000 };
  const firstSeed = parseInteger('--seed', flags.seed, { min: 0, max: 2 ** 32 - 1 });
  const jobs =
    flags.jobs === undefined ? availableParallelism() : parseInteger('--jobs', flags.jobs, { min: 1, max: 1024 });
  const { keptSeedsFile } = await import('../sim/batch/kept-seeds.ts');
  const inCheckout = existsSync(keptSeedsFile);
  const shared = { firstSeed, jobs, verbose: flags.verbose === true, json: flags.json === true, signal };
  if (flags.once && flags.twice) throw usageError('--once and --twice exclude each other');
  const { runSim } = await import('../sim/batch/run.ts');
  return end(
    await runSim(
      {
        ...shared,
        seeds: parseInteger('--seeds', flags.seeds ?? (flags.large ? fleetSeedsDefault : seedsDefault), many),
        size: flags.large ? 'fleet' : 'small',
        twice: flags.once !== true,
        narrowing: await narrowingOf(flags),
        shrink: flags.shrink,
        keep: flags.keep ?? (inCheckout && cli.environment['CI'] === undefined),
        ...(inCheckout ? { seedsFile: keptSeedsFile } : {}),
      },
      cli.stdout,
    ),
  );
}

async function narrowingOf(flags: SimFlags) {
  const { knownMisfortunes } = await import('../sim/batch/narrowing.ts');
  const known = knownMisfortunes();
  const kinds = (flag: '--with' | '--without', words: string): string[] => {
    const named = words.split(',').map((word) => word.trim());
    const unknown = named.find((word) => !known.includes(word));
    if (unknown !== undefined) throw usageError(`${flag} names "${unknown}", which is none of: ${known.join(', ')}`);
    return named;
  };
  const count = (flag: string, text: string): number => parseInteger(flag, text, { min: 1, max: 10_000 });
  const { isScenarioName, scenarioNames } = await import('../sim/named-scenarios.ts');
  const { scenario } = flags;
  if (scenario !== undefined && !isScenarioName(scenario))
    throw usageError(`--scenario names "${scenario}"`, `choose one of: ${scenarioNames.join(', ')}`);
  return {
    ...(scenario === undefined ? {} : { scenario }),
    ...(flags.with === undefined ? {} : { with: kinds('--with', flags.with) }),
    ...(flags.without === undefined ? {} : { without: kinds('--without', flags.without) }),
    ...(flags.hosts === undefined ? {} : { hosts: count('--hosts', flags.hosts) }),
    ...(flags.servers === undefined ? {} : { servers: count('--servers', flags.servers) }),
    ...(flags.tenants === undefined ? {} : { tenants: count('--tenants', flags.tenants) }),
    ...(flags.storm === undefined ? {} : { stormMs: 1000 * count('--storm', flags.storm) }),
  };
}

function end(exitCode: number): void {
  if (exitCode === exitCodes.ok) return;
  if (exitCode === exitCodes.interrupted) throw new Interrupted();
  throw new CommandError(exitCode, 'the simulation failed; the lines above say where');
}
