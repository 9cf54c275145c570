// `berth sim replay` with its own files: its output, and its errors for invalid arguments and files.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock, systemFetch } from '../base/system.ts';
import type { Cli } from '../cli/cli.ts';
import { runProgram } from '../cli/program.ts';
import { processCommands } from './registry.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-replay-'));
  const rows = [
    'id,arrive_s,depart_s,cpu_milli,mem_mib',
    'a,0,3600,4000,1024',
    'b,0,7200,4000,1024',
    'c,9,3600,4000,1',
  ];
  await writeFile(join(directory, 'trace.csv'), rows.join('\n'));
  await writeFile(join(directory, 'torn.csv'), `${rows[0]}\na,0,3600,four,1024`);
  await writeFile(
    join(directory, 'hosts.csv'),
    'sn,cpu_milli,memory_mib,gpu,model\nh1,8000,16384,0,\nh2,4000,16384,0,\n',
  );
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function replay(...words: readonly string[]) {
  let stdout = '';
  let stderr = '';
  const cli: Cli = {
    stdout: { write: (data) => (stdout += String(data)) },
    stderr: { write: (data) => (stderr += String(data)) },
    stdin: (async function* () {})(),
    environment: { NO_COLOR: '1' },
    homeDirectory: directory,
    clock: systemClock,
    fetch: systemFetch,
    version: '0.0.0-test',
    runProgram: () => Promise.reject(new Error('not here')),
    self: [],
    interruption: () => new AbortController().signal,
  };
  const [trace = '', ...flags] = words;
  const exitCode = await runProgram(cli, ['sim', 'replay', join(directory, trace), ...flags], processCommands);
  return { exitCode, stdout, stderr };
}

describe('berth sim replay', () => {
  it('shows profiles side by side, and hosts in use over time', async () => {
    const { exitCode, stdout, stderr } = await replay(
      'trace.csv',
      '--fleet',
      '8x16GiB',
      '--profile',
      'avoid-fragmentation,best-fit',
    );
    expect(exitCode).toBe(0);
    expect(stdout).toContain('trace.csv on 8x16GiB');
    expect(stdout).toMatch(/^ +avoid-fragmentation +best-fit$/m);
    expect(stdout).toMatch(/^host-hours in use +3\.0 +3\.0$/m);
    expect(stdout).toMatch(/█.* {2}hosts in use, best-fit/);
    expect(stderr).toContain('reading trace.csv');
  });
  it('writes a plot, and figures for programs', async () => {
    const plot = join(directory, 'plot.svg');
    const { stdout } = await replay('trace.csv', '--fleet', join(directory, 'hosts.csv'), '--plot', plot, '--json');
    expect(JSON.parse(stdout)).toMatchObject([{ profile: 'avoid-fragmentation', placed: 3, hosts: 2, ratio: null }]);
    expect(await readFile(plot, 'utf8')).toMatch(/^<svg/);
  });
  it('tells the figures, too, where the plot cannot be written', async () => {
    const plot = join(directory, 'nowhere', 'plot.svg');
    const { stdout, stderr, exitCode } = await replay('trace.csv', '--fleet', '8x16GiB', '--plot', plot);
    expect(exitCode).toBe(2);
    expect(stdout).toContain('host-hours in use');
    expect(stderr).toContain('the plot cannot be written');
  });
  it('takes only some rows, and moves', async () => {
    const { stdout } = await replay('trace.csv', '--fleet', '8x16GiB', '--limit', '2', '--moves', '1/2', '--json');
    expect(JSON.parse(stdout)).toMatchObject([{ arrivals: 2, moves: { budget: 1 } }]);
  });
  it.each([
    ['a fleet without a unit', ['trace.csv', '--fleet', '8x16'], '"8x16" is not a fleet'],
    [
      'a fleet that is not there',
      ['trace.csv', '--fleet', 'nowhere.csv'],
      '"nowhere.csv" cannot be read as a list of hosts',
    ],
    ['a trace that is not there', ['nowhere.csv', '--fleet', '8x16GiB'], 'cannot be read as a trace'],
    ['a torn trace', ['torn.csv', '--fleet', '8x16GiB'], 'line 2, column "cpu_milli": "four" is not a whole number'],
    ['an unknown profile', ['trace.csv', '--fleet', '8x16GiB', '--profile', 'tight'], '--profile cannot be "tight"'],
    ['moves without sense', ['trace.csv', '--fleet', '8x16GiB', '--moves', 'many'], '--moves cannot be "many"'],
    ['no rows', ['trace.csv', '--fleet', '8x16GiB', '--groups', 'none'], 'has no row to replay'],
    ['no fleet', ['trace.csv'], 'missing option --fleet <fleet>'],
  ])('refuses %s', async (_, words, message) => {
    const { exitCode, stderr } = await replay(...words);
    expect(stderr).toContain(message);
    expect(exitCode).toBe(2);
  });
});
