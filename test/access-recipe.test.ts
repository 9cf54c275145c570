// Follows the recipe in docs/access-control.md: its commands run against a server, and print what the document says.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock, systemFetch } from '../src/base/system.ts';
import { runProgram } from '../src/cli/program.ts';
import { startTestServer } from '../src/server/testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

async function berth(words: readonly string[], token: string) {
  let stdout = '';
  let stderr = '';
  const text = (data: string | Uint8Array): string => Buffer.from(data).toString();
  const exitCode = await runProgram(
    {
      stdout: { write: (data) => (stdout += text(data)) },
      stderr: { write: (data) => (stderr += text(data)) },
      stdin: (async function* () {})(),
      environment: { NO_COLOR: '1', BERTH_URL: 'https://berth.test', BERTH_TOKEN: token },
      homeDirectory: '/nonexistent',
      clock: systemClock,
      fetch: (url, init) => systemFetch(url.replace('https://berth.test', server.url), init),
      runProgram: () => Promise.resolve(0),
      self: ['berth'],
      version: 'test',
      interruption: () => new AbortController().signal,
    },
    words,
  );
  return { exitCode, stdout: stdout.trim(), stderr };
}

/** `$ X=$(BERTH_TOKEN=$Y berth ...)`, and the lines that it prints. */
const command = /^\$ (?:([A-Z]+)=\$\()?(?:BERTH_TOKEN=\$([A-Z]+) )?berth ([^)\n]+)\)?$/;

it('is as docs/access-control.md says', async () => {
  const document = await readFile(join(import.meta.dirname, '../docs/access-control.md'), 'utf8');
  const recipe = document.slice(document.indexOf('## Recipe'), document.indexOf('## What others have'));
  const lines = [...recipe.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
    block.trim().split('\n'),
  );
  expect(lines.length).toBeGreaterThan(10);
  const tokens = new Map([['', 'operator']]);
  for (const [i, line] of lines.entries()) {
    if (!line.startsWith('$ ')) continue;
    const [, kept, by = '', words = ''] = command.exec(line) ?? [];
    const done = await berth(words.split(' '), tokens.get(by) ?? '');
    if (kept !== undefined) tokens.set(kept, done.stdout);
    const said = lines[i + 1]?.startsWith('$ ') ? undefined : lines[i + 1];
    const printed = done.stdout === '' ? done.stderr.split('\n', 1)[0] : done.stdout;
    if (said !== undefined) expect([line, printed]).toEqual([line, said]);
    expect([line, done.exitCode === 0]).toEqual([line, said === undefined || said === 'yes']);
  }
});
