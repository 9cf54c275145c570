// Follows docs/job-templates.md: its commands run against a server, and print what the document says.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestServer } from '../src/server/testing.ts';
import { berthAt } from './recipe-cli.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'https://images.test/x.qcow2' } });
});
afterAll(() => server.close());

/** Single and double quotes are those of the shell; nothing else is. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, single, double, plain]) => single ?? double ?? plain ?? '');

/** `...` stands for anything, and columns may be wider. */
function patternOf(line: string): RegExp {
  const words = line.trim().split(/\s+/);
  return new RegExp(
    `^${words.map((word) => (word === '...' ? '.*' : word.replaceAll('*', String.raw`\*`))).join('\\s+')}$`,
  );
}

it('is as docs/job-templates.md says', async () => {
  const document = await readFile(join(import.meta.dirname, '../docs/job-templates.md'), 'utf8');
  const commands = [...document.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
    block.split(/^\$ berth /m).slice(1),
  );
  expect(commands).toHaveLength(7);
  for (const command of commands) {
    const [words = '', ...said] = command.trimEnd().split('\n');
    const done = await berthAt({ url: server.url, token: 'operator' }, wordsOf(words));
    expect([words, done.stderr, done.exitCode]).toEqual([words, '', 0]);
    const printed = done.stdout.trimEnd().split('\n');
    expect(printed).toHaveLength(said.length);
    for (const [i, line] of said.entries()) expect(printed[i]).toMatch(patternOf(line));
  }
});
