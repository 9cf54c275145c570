// `npm run sim`: the command `berth sim`, and the museum, which plants bugs in the sources and so needs a checkout.

import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { system } from '../src/base/system.ts';
import { runMuseum } from '../src/sim/museum/museum.ts';

interface MuseumFlags {
  readonly museum?: true;
  readonly plant?: string;
  readonly quick?: true;
  readonly seeds?: number;
  readonly seed: number;
  readonly jobs: number;
  readonly verbose?: true;
  readonly json?: true;
}

function museumCommand(): Command {
  return new Command('npm run sim --')
    .usage('--museum | --plant BUG')
    .description('Plant known bugs in the sources, one at a time: the simulator must find each')
    .option('--museum', 'plant every known bug in turn')
    .option('--plant <bug>', 'plant this bug only')
    .option('--quick', 'begin with the seeds that have caught rare bugs before')
    .option('--seeds <count>', 'runs for each bug (default: its budget)', wholeNumber({ min: 1, max: 10_000_000 }))
    .option('--seed <number>', 'the first seed', wholeNumber({ min: 0, max: 2 ** 32 - 1 }), 1)
    .option('--jobs <count>', 'processes at once', wholeNumber({ min: 1, max: 1024 }), availableParallelism())
    .option('--verbose', 'print what led to each catch')
    .option('--json', 'print one JSON object per line')
    .exitOverride();
}

const wholeNumber =
  ({ min, max }: { readonly min: number; readonly max: number }) =>
  (text: string): number => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max))
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    return value;
  };

/** Resolves to the exit code. */
async function museum(words: readonly string[]): Promise<number> {
  const command = museumCommand();
  try {
    command.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error; // Commander has printed what is wrong, or the help
    return error.exitCode === 0 ? 0 : 2;
  }
  const { seeds, seed, jobs, plant, quick = false, verbose = false, json = false } = command.opts<MuseumFlags>();
  return runMuseum(
    {
      ...(plant === undefined ? {} : { bugs: [plant] }),
      seedsMax: seeds,
      firstSeed: seed,
      jobs,
      quick,
      verbose,
      json,
      signal: system.terminationSignal(),
    },
    process.stdout,
  );
}

const words = process.argv.slice(2);
if (words.some((word) => word === '--museum' || word === '--plant' || word.startsWith('--plant='))) {
  process.exitCode = await museum(words);
} else {
  if (words.includes('--help')) process.stdout.write('In a checkout, also: npm run sim -- --museum --help\n\n');
  process.argv.splice(1, 1, fileURLToPath(new URL('../src/main.ts', import.meta.url)), 'sim');
  await import('../src/main.ts');
}
