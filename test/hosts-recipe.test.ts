// Follows docs/hosts.md: the commands about lost hosts and about pools run against a server, and print what the document says.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestServer } from '../src/server/testing.ts';
import { berthAt } from './recipe-cli.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let document: string;
beforeAll(async () => {
  server = await startTestServer();
  document = await readFile(join(import.meta.dirname, '../docs/hosts.md'), 'utf8');
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'https://images.test/x.qcow2' } });
  for (const name of ['build-1', 'build-2'])
    await server.client.create('host', { metadata: { name }, spec: { paused: false } });
});
afterAll(() => server.close());

const berth = (words: readonly string[]) => berthAt({ url: server.url, token: 'operator' }, words);

/** The commands of a section, each with the lines that it prints. */
function commandsOf(title: string): string[][] {
  const [, section = ''] = document.split(`## ${title}\n`);
  const [, block = ''] = /```console\n([\s\S]*?)```/.exec(section) ?? [];
  return block
    .split(/^\$ berth /m)
    .slice(1)
    .map((command) => command.trimEnd().split('\n'));
}

it.each([
  ['States of a host, and its loss', 3],
  ['One pool for each kind of worker', 5],
])('is as docs/hosts.md says: %s', async (title, count) => {
  const commands = commandsOf(title);
  expect(commands).toHaveLength(count);
  for (const [words = '', ...said] of commands) {
    const done = await berth(words.split(' '));
    expect([words, done.stderr, done.exitCode]).toEqual([words, '', 0]);
    if (said.length > 0) expect(done.stdout.trimEnd().split('\n')).toEqual(said);
  }
});

it('declares only a host that is not heard to be down', async () => {
  const done = await berth(['host', 'declare-down', 'build-2', '--reason', 'power is off']);
  expect([done.stderr, done.stdout]).toEqual(['', 'build-2 is down\n']);
  const { status } = await server.client.get('host', 'build-2');
  expect(status.down?.proof).toMatchObject({ kind: 'operator', message: 'declared to be down: power is off' });
});
