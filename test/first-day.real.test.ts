// Follows docs/first-day.md: its commands run in this process, against a fleet as `berth dev` starts it, with simulated guests.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock, systemFetch, systemLogger } from '../src/base/system.ts';
import { runProgram } from '../src/cli/program.ts';
import { type LocalFleet, startLocalFleet } from '../src/commands/local-fleet.ts';
import { processCommands } from '../src/commands/registry.ts';

let fleet: LocalFleet;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-first-day-'));
  fleet = await startLocalFleet(
    { dataDirectory: directory, imageDirectory: directory, listen: '127.0.0.1:0', drivers: ['fake'], hostName: 'vm' },
    { log: systemLogger('silent') },
  );
  await writeFile(join(directory, 'dev.token'), fleet.operatorToken, { mode: 0o600 });
  await berth(['context', 'set', 'dev', '--url', fleet.url, '--token-file', join(directory, 'dev.token')]);
  await berth([
    'image',
    'add',
    'tiny',
    '--source',
    'https://images.test/tiny.qcow2',
    '--cpus',
    '1',
    '--memory',
    '128MiB',
  ]);
});
afterAll(async () => {
  await fleet.close();
  await rm(directory, { recursive: true, force: true });
});

async function berth(words: readonly string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  let stdout = '';
  let stderr = '';
  const text = (data: string | Uint8Array): string => Buffer.from(data).toString();
  const exitCode = await runProgram(
    {
      stdout: { write: (data) => (stdout += text(data)) },
      stderr: { write: (data) => (stderr += text(data)) },
      stdin: (async function* () {})(),
      environment: { NO_COLOR: '1', BERTH_CONFIG: join(directory, 'config.yaml') },
      homeDirectory: directory,
      clock: systemClock,
      fetch: systemFetch,
      runProgram: () => Promise.resolve(0),
      self: ['berth'],
      version: 'test',
      interruption: () => new AbortController().signal,
    },
    words,
    processCommands,
  );
  return { exitCode, stdout, stderr };
}

/** Files are those of the test's directory, and the server is the test's. */
function wordsOf(line: string): string[] {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  return words.map((word) =>
    /\.(token|backup)$/.test(word) ? join(directory, word) : word.replace('http://127.0.0.1:7070', fleet.url),
  );
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

it('goes as docs/first-day.md says', async () => {
  const page = await readFile(join(import.meta.dirname, '../docs/first-day.md'), 'utf8');
  const commands = [...page.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
    block.split(/^\$ berth /m).slice(1),
  );
  expect(commands.length).toBeGreaterThan(20);
  for (const command of commands) {
    const [line = '', ...lines] = command.trimEnd().split('\n');
    const [called = '', file] = line.split(' > ');
    const { stdout, stderr, exitCode } = await berth(wordsOf(called));
    if (file !== undefined) await writeFile(join(directory, file), stdout, { mode: 0o600 });
    // Progress goes to standard error. What a list shows besides is not the document's.
    const said = exitCode === 0 ? stdout : stderr;
    const pattern = lines.map((each) => each.split('...').map(escaped).join('.*')).join('\n');
    expect([line, said]).toEqual([line, expect.stringMatching(new RegExp(`^${pattern}`))]);
  }
});
