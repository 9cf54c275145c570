// `berth sim replay TRACE --fleet FLEET --profile P`: replays a recorded trace with the production scheduler. It reads
// files and, for a plot, writes one; it never contacts a server.

import { readFile, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { Command } from 'commander';
import { profileNames } from '../api/resources/profile.ts';
import { describeError } from '../base/log.ts';
import { system } from '../base/system.ts';
import type { Cli } from '../cli/cli.ts';
import { usageError } from '../cli/exit-codes.ts';
import { type Column, printTable, printValue } from '../cli/print/output.ts';
import { oneOf } from '../cli/options/place-options.ts';
import { type Progress, startProgress } from '../cli/print/progress.ts';
import { age, parseInteger } from '../cli/options/units.ts';
import { fleetFromList, isFleetShape, parseFleetShape, type ReplayFleet } from '../sim/replay/replay-fleet.ts';
import { plotSvg, sparkline } from '../sim/replay/replay-plot.ts';
import { type Replayed, type ReplayOptions, replaySteps } from '../sim/replay/replay.ts';
import { rowsOf } from '../sim/replay/trace-rows.ts';
import { readTrace, type Trace } from '../sim/replay/trace.ts';

interface ReplayFlags {
  readonly fleet: string;
  readonly profile: string;
  readonly moves?: string;
  readonly limit?: string;
  readonly groups?: string;
  readonly plot?: string;
}

const rowsMax = 1_000_000_000;
const plotWidth = 60;

export function simReplayCommand(cli: Cli): Command {
  return new Command('replay')
    .description(
      'Run a recorded trace through the scheduler, and report waiting times, utilization and stranded resources',
    )
    .argument('<trace>', 'a file: id, arrive_s, depart_s, cpu_milli, mem_mib, ...; docs/simulator.md has the columns')
    .requiredOption(
      '--fleet <fleet>',
      '64x128GiB: as many hosts as needed; 100x64x128GiB, 10x64x512GiBx8:A100; or a file with a list of hosts',
    )
    .option(
      '--profile <profiles>',
      `one or more of ${profileNames.join(', ')}; separated by commas`,
      'avoid-fragmentation',
    )
    .option('--moves <share>', 'move instances to empty hosts: 1/50 allows one move for 50 arrivals')
    .option('--limit <rows>', 'only this many rows of the trace')
    .option('--groups <ending>', 'only rows whose group ends with this')
    .option('--plot <file>', 'write an SVG plot of hosts in use over time')
    .option('--json', 'print one JSON array, with an object per profile')
    .action(async (file: string, flags: ReplayFlags, command: Command) => {
      const json = command.optsWithGlobals()['json'] === true; // `berth sim` has an option of the same name, which takes the value
      const profiles = flags.profile.split(',').map((each) => oneOf('--profile', each, profileNames));
      const movesPerArrival = flags.moves === undefined ? 0 : parseMoves(flags.moves);
      const limit =
        flags.limit === undefined ? rowsMax : parseInteger('--limit', flags.limit, { min: 1, max: rowsMax });
      const progress = startProgress(cli);
      try {
        progress.update(`reading ${basename(file)}`);
        const fleet = await fleetOf(flags.fleet);
        const trace = part(await traceOf(file), limit, flags.groups);
        if (trace.rows === 0) throw usageError(`${file} has no row to replay`, 'see --groups and --limit');
        const replays: Replayed[] = [];
        for (const profile of profiles)
          replays.push(
            await run({ trace, fleet, profile, movesPerArrival, clockMs: () => cli.clock.monotonicMs() }, progress),
          );
        progress.end();
        const title = `${basename(file)} on ${basename(flags.fleet)}`;
        if (json) await printValue(cli, 'json', replays);
        else print(cli, title, replays);
        // Last, so that a plot that cannot be written does not lose the results of a long run.
        if (flags.plot !== undefined) await write(flags.plot, plotSvg(title, replays));
      } finally {
        progress.end();
      }
    });
}

async function run(options: ReplayOptions, progress: Progress): Promise<Replayed> {
  const steps = replaySteps(options);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    progress.update(`${options.profile}: ${Math.floor(100 * step.value)} %`);
    await system.turn();
  }
}

function print(cli: Cli, title: string, replays: readonly Replayed[]): void {
  cli.stdout.write(`${title}\n\n`);
  const columns: Column<Line>[] = [
    { header: '', value: ([label]) => label },
    ...replays.map((each) => ({
      header: each.profile,
      value: ([, tell]: Line) => tell(each),
      right: true,
      importance: 'major' as const,
    })),
  ];
  printTable(
    cli,
    columns,
    lines.filter(([, tell]) => replays.some((each) => tell(each) !== '')),
  );
  const top = Math.max(...replays.flatMap(({ stretches }) => stretches.map(({ hostsInUse }) => hostsInUse)));
  for (const { profile, stretches } of replays) {
    const needed = stretches.map(({ hostsNeeded }) => hostsNeeded);
    cli.stdout.write(
      `\n${sparkline(
        stretches.map(({ hostsInUse }) => hostsInUse),
        plotWidth,
        top,
      )}  hosts in use, ${profile}\n${sparkline(needed, plotWidth, top)}  needed at least\n`,
    );
  }
}

type Line = readonly [label: string, tell: (replayed: Replayed) => string];

const lines: readonly Line[] = [
  ['instances', ({ arrivals }) => String(arrivals)],
  ['too large for any host', ({ impossible }) => (impossible === 0 ? '' : String(impossible))],
  ['ended within a second of their arrival', ({ momentary }) => (momentary === 0 ? '' : String(momentary))],
  ['placed', ({ placed }) => String(placed)],
  ['still waiting at the end', ({ waiting }) => String(waiting)],
  ['waited for room', ({ waits }) => String(waits.delayed)],
  ['wait p50', ({ waits }) => duration(waits.p50S)],
  ['wait p99', ({ waits }) => duration(waits.p99S)],
  ['longest wait', ({ waits }) => duration(waits.maxS)],
  ['time', ({ spanS }) => duration(spanS)],
  ['hosts', ({ hosts }) => String(hosts)],
  ['hosts in use at most', ({ hostsPeak }) => String(hostsPeak)],
  ['host-hours in use', ({ hostHours }) => hostHours.toFixed(1)],
  ['host-hours needed at least', ({ boundHostHours }) => boundHostHours?.toFixed(1) ?? ''],
  ['in use / needed', ({ ratio }) => ratio?.toFixed(4) ?? ''],
  ['CPUs stranded', ({ stranded }) => percent(stranded.cpuPercent)],
  ['memory stranded', ({ stranded }) => percent(stranded.memoryPercent)],
  ['GPUs stranded', ({ stranded }) => percent(stranded.gpuPercent)],
  ['GPUs handed out at the end', ({ gpuAllocatedPercent }) => percent(gpuAllocatedPercent)],
  ['moves made', ({ moves }) => (moves.budget === 0 ? '' : `${moves.made} of ${moves.budget}`)],
  ['hosts emptied by moves', ({ moves }) => (moves.budget === 0 ? '' : String(moves.hostsEmptied))],
  ['decisions per second', ({ decisionsPerS }) => String(Math.round(decisionsPerS))],
];

function percent(value: number | null): string {
  return value === null ? '' : `${value.toFixed(2)} %`;
}

function duration(seconds: number): string {
  return age(1000 * seconds);
}

/** `1/50`, or `0.02`. */
function parseMoves(text: string): number {
  const [, above = '', below = '1'] = /^(\d+(?:\.\d+)?)(?:\/(\d+))?$/.exec(text) ?? [];
  const share = above === '' ? Number.NaN : Number(above) / Number(below);
  if (!(share >= 0 && share <= 1))
    throw usageError(`--moves cannot be "${text}"`, 'write how many moves for each arrival, at most 1: 1/50');
  return share;
}

function part(trace: Trace, limit: number, ending: string | undefined): Trace {
  if (limit >= trace.rows && ending === undefined) return trace;
  const rows: number[] = [];
  for (let row = 0; row < trace.rows && rows.length < limit; row++)
    if (ending === undefined || trace.group.names[trace.group.of[row] ?? 0]?.endsWith(ending)) rows.push(row);
  return rowsOf(trace, rows);
}

async function fleetOf(text: string): Promise<ReplayFleet> {
  if (isFleetShape(text)) return told(() => parseFleetShape(text));
  const packed = await read(text, 'a list of hosts, nor a shape like 64x128GiB');
  return told(() => fleetFromList(packed, text));
}

async function traceOf(file: string): Promise<Trace> {
  const packed = await read(file, 'a trace');
  return told(() => readTrace(packed, file));
}

async function read(file: string, meantAs: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (error) {
    throw usageError(`"${file}" cannot be read as ${meantAs}: ${describeError(error)}`, 'name an existing file');
  }
}

async function write(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    throw usageError(`the plot cannot be written to "${file}": ${describeError(error)}`);
  }
}

/** Reports an invalid file or argument as an error of the user. */
function told<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw usageError(error instanceof Error ? error.message : String(error));
  }
}
