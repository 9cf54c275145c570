// Follows docs/apply.md: its commands run against a server, and print what the document says.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { randomSecret } from '../src/base/system.ts';
import { parseMasterKeys } from '../src/server/sealing/master-keys.ts';
import { openSealing } from '../src/server/sealing/open-sealing.ts';
import { newMasterKey } from '../src/server/sealing/read-master-keys.ts';
import { startTestServer } from '../src/server/testing.ts';
import { createMemoryStore } from '../src/store/memory/memory-store.ts';
import { berthAt } from './recipe-cli.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let folder: string;
beforeAll(async () => {
  const keys = { masterKeys: parseMasterKeys(newMasterKey()), nowMs: 1, randomSecret };
  const { store } = await openSealing(createMemoryStore(), keys);
  server = await startTestServer({ store });
  folder = await mkdtemp(join(tmpdir(), 'berth-apply-'));
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

const berth = (words: readonly string[]) => berthAt({ url: server.url, token: 'operator' }, words);

it('is as docs/apply.md says', async () => {
  const document = await readFile(join(import.meta.dirname, '../docs/apply.md'), 'utf8');
  const site = /```yaml\n([\s\S]*?)```/.exec(document)?.[1] ?? '';
  const [pool = '', size = ''] = site.split('---\n');
  await writeFile(join(folder, 'site.yaml'), site);
  await writeFile(join(folder, 'changed.yaml'), `${pool}---\n${size.replace('cpus: 2', 'cpus: 4')}`);
  await writeFile(join(folder, 'pool-only.yaml'), pool);
  const commands = [...document.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
    block.split(/^\$ berth /m).slice(1),
  );
  expect(commands).toHaveLength(6);
  for (const command of commands) {
    const [words = '', ...said] = command.trimEnd().split('\n');
    const done = await berth(words.split(' ').map((word) => (word.endsWith('.yaml') ? join(folder, word) : word)));
    const code = done.exitCode === 0 ? [] : [`[exit code ${done.exitCode}]`];
    expect([words, done.stderr, ...done.stdout.trimEnd().split('\n'), ...code]).toEqual([words, '', ...said]);
  }
});

const put = async (text: string): Promise<string> => {
  const path = join(folder, 'one.yaml');
  await writeFile(path, text);
  return path;
};

it.each([
  ['kind: pol\nmetadata: {name: a}', 'kind is "pol", which is none'],
  ['metadata: {name: a}', 'kind is missing'],
  ['kind: event\nmetadata: {name: a}', 'events are not made from files'],
  ['kind: pool', 'metadata is missing'],
  ['kind: pool\nmetadata: {}', 'metadata.name is missing'],
  ['kind: pool\nmetadata: {name: a, labels: {x: 1}}', 'metadata.labels must be texts by name'],
  ['kind: pool\nmetadata: {name: a}\nspecs: {}', 'there is no field "specs"'],
  ['kind: pool\nmetadata: {name: a}\nspec: 3', 'spec must be an object'],
  ['kind: pool\nmetadata: {name: a}\n---\nkind: pool\nmetadata: {name: a}', 'is described at'],
  ['kind: pool\nkind: pool\nmetadata: {name: a}', 'cannot read'],
  ['- 1', 'a resource has the fields kind, metadata and spec'],
  ['', 'there are no resources in'],
  ['kind: size\nmetadata: {name: big}\nspec: {cpus: 0, memoryMiB: 64}', 'spec.cpus'],
  ['kind: pool\nmetadata: {name: Bad}', 'metadata.name'],
  ['kind: instance\nmetadata: {name: vm}\nspec: {image: none-such}', 'none-such'],
])('refuses %j', async (text, message) => {
  const done = await berth(['apply', '-f', await put(text)]);
  expect(done.stderr).toContain(message);
  expect(done.exitCode).not.toBe(0);
  expect(done.stdout).toBe('');
});

it('makes nothing when one document is refused', async () => {
  const path = await put('kind: pool\nmetadata: {name: good}\n---\nkind: size\nmetadata: {name: s}\nspec: {cpus: 0}');
  const { stderr, exitCode } = await berth(['apply', '-f', path]);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('one.yaml:4: size s:')]);
  expect(stderr).toContain('1 of 2 resources cannot be created; nothing was changed');
  expect((await berth(['diff', '-f', path])).exitCode).toBe(1); // 2 says that something would change
  expect((await berth(['get', 'pool', 'good'])).exitCode).not.toBe(0);
});

it('checks later what names something that it creates', async () => {
  const path = await put(
    'kind: instance\nmetadata: {name: vm}\nspec: {image: tiny, cpus: 1}\n---\nkind: image\nmetadata: {name: tiny}\nspec: {source: "file:///tiny.qcow2"}',
  );
  const done = await berth(['apply', '-f', path]);
  expect([done.stderr, done.exitCode]).toEqual(['', 0]);
  expect(done.stdout).toContain('+ instance vm  (checked when what it names exists)');
  const again = await berth(['apply', '-f', path, '-o', 'json']);
  expect(JSON.parse(again.stdout)).toMatchObject({ applied: true, changes: [{ action: 'none' }, { action: 'none' }] });
});

it('sees that a hidden value changes', async () => {
  const secret = (value: string): string => `kind: secret\nmetadata: {name: s}\nspec: {values: {key: ${value}}}`;
  expect(await berth(['apply', '-f', await put(secret('first-value'))])).toMatchObject({ exitCode: 0, stderr: '' });
  const same = await berth(['diff', '-f', await put(secret('first-value'))]);
  const other = await berth(['diff', '-f', await put(secret('second-value'))]);
  expect([same.exitCode, other.exitCode]).toEqual([0, 2]);
  expect(other.stdout + same.stdout).not.toMatch(/first-value|second-value/);
});

it('deletes with --prune what has the labels and stands in no file', async () => {
  const both =
    'kind: pool\nmetadata: {name: p1, labels: {by: me}}\n---\nkind: pool\nmetadata: {name: p2, labels: {by: me}}';
  await berth(['apply', '-f', await put(both)]);
  const words = [
    'apply',
    '-f',
    await put('kind: pool\nmetadata: {name: p1, labels: {by: me}}'),
    '--prune',
    '-l',
    'by=me',
  ];
  expect((await berth(words)).stdout).toBe('- pool p2\n1 deleted, 1 unchanged\n');
  expect((await berth(words)).stdout).toBe('1 unchanged\n');
});
