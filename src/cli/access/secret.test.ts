import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Handler, page, runBerth, testNowMs } from '../testing.ts';

const planted = 'planted-8f1c2d';
const secret = {
  kind: 'secret',
  schemaVersion: 1,
  metadata: {
    id: 'secret_1',
    name: 'db',
    project: 'default',
    revision: 7,
    generation: 1,
    labels: { a: 'b' },
    createdAtMs: testNowMs - 90_000,
  },
  spec: { description: 'of the shop' },
  status: { version: 3, keys: { password: { updatedAtMs: testNowMs - 60_000 } } },
};
const handler: Handler = ({ method, path }) => {
  if (method === 'GET') return path === '/v1/secrets' ? page([secret]) : { json: secret };
  return { status: method === 'POST' ? 201 : 200, json: secret };
};

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-secret-'));
  await writeFile(join(directory, 'key'), `${planted}\n`);
  await writeFile(join(directory, 'binary'), Buffer.of(0xff, 0x00, 0x01));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const bodiesOf = (requests: readonly { readonly body?: unknown; readonly method: string }[]): unknown[] =>
  requests.filter(({ method }) => method !== 'GET').map(({ body }) => body);

describe('berth secret', () => {
  it('is created from words, files and standard input, and says nothing of the values', async () => {
    const words = `secret create db --from-literal user=ada=x --from-file key=${directory}/key --from-stdin password --description of-the-shop`;
    const { requests, stdout, stderr } = await runBerth(words.split(' '), { handler, stdin: `${planted}-2\n` });
    expect(bodiesOf(requests)).toEqual([
      {
        metadata: { name: 'db', project: 'default' },
        spec: {
          description: 'of-the-shop',
          values: { user: 'ada=x', key: `${planted}\n`, password: `${planted}-2` },
        },
      },
    ]);
    expect(stdout + stderr).toBe('secret db created\n');
  });

  it('sets some values and leaves the others, its labels and its description', async () => {
    const words = 'secret set db --from-literal password=new --unset old'.split(' ');
    const { requests } = await runBerth(words, { handler });
    expect(bodiesOf(requests)).toEqual([
      {
        metadata: { project: 'default', labels: { a: 'b' }, revision: 7 },
        spec: { description: 'of the shop', values: { password: 'new', old: null } },
      },
    ]);
  });

  it('shows names and times', async () => {
    expect((await runBerth(['secret', 'ls'], { handler })).stdout).toMatch(/db +password +3 +90s/);
    expect((await runBerth(['secret', 'show', 'db'], { handler })).stdout).toMatch(
      /db, version 3\nVALUE +SET\npassword +60s ago/,
    );
  });

  it.each([
    ['twice the same', ['--from-literal', `k=${planted}`, '--from-literal', 'k=x'], 'the value "k" is given twice'],
    ['without a name', ['--from-literal', planted], '--from-literal is not KEY=VALUE'],
    [
      'a file that is no text',
      ['--from-file', `k=/proc/self/exe`],
      'cannot read a value from /proc/self/exe: it is larger',
    ],
  ])('refuses %s, and does not repeat it', async (_, words, message) => {
    const { stderr, exitCode } = await runBerth(['secret', 'create', 'db', ...words], { handler });
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain(planted);
  });

  it('refuses what is no text', async () => {
    const words = ['secret', 'create', 'db', '--from-file', `k=${directory}/binary`];
    expect((await runBerth(words, { handler })).stderr).toContain('it is not text');
  });
});
