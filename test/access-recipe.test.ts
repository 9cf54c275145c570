// Follows the recipe in docs/access-control.md: its commands run against a server, and print what the document says.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestServer } from '../src/server/testing.ts';
import { berthAt } from './recipe-cli.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

async function berth(words: readonly string[], token: string) {
  const said = await berthAt({ url: server.url, shownUrl: 'https://berth.test', token }, words);
  return { ...said, stdout: said.stdout.trim() };
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
