// Follows docs/spares.md: its commands and requests run against a server whose provisioner makes nothing.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemFetch } from '../src/base/system.ts';
import type { Provisioner } from '../src/server/spares/provisioner.ts';
import { startTestServer, testRegistration } from '../src/server/testing.ts';
import { berthAt } from './recipe-cli.ts';

const gate = Promise.withResolvers<void>();
let server: Awaited<ReturnType<typeof startTestServer>>;
let document: string;
beforeAll(async () => {
  document = await readFile(join(import.meta.dirname, '../docs/spares.md'), 'utf8');
  const metal: Provisioner = {
    provision: () => Promise.resolve({ is: 'done', address: '10.0.0.9' }),
    release: () => gate.promise.then(() => ({ is: 'done' })),
  };
  const probe = () => Promise.resolve({ ready: true, message: 'it answers' });
  server = await startTestServer({ spares: { provisioners: new Map([['metal', metal]]), probe } });
  await server.client.create('pool', { metadata: { name: 'edge' }, spec: {} });
  await server.client.create('host', { metadata: { name: 'h1' }, spec: { pool: 'edge' } });
  await server
    .agentClient('h1')
    .register(testRegistration({ machineId: 'h1', capacity: { VCPU: 8, MEMORY_MB: 16_384 } }));
});
afterAll(() => server.close());

const berth = (words: readonly string[]) => berthAt({ url: server.url, token: 'operator' }, words);
const request = (path: string, init: RequestInit = {}) =>
  systemFetch(server.url + path, {
    ...init,
    headers: { authorization: 'Bearer operator', 'content-type': 'application/json' },
  });

it('is as docs/spares.md says on the command line', async () => {
  const [, block = ''] = /```console\n([\s\S]*?)```/.exec(document) ?? [];
  const commands = block.split(/^\$ berth /m).slice(1);
  expect(commands).toHaveLength(2);
  for (const command of commands) {
    const [words = '', ...said] = command.trimEnd().split('\n');
    const done = await berth(words.split(' '));
    expect([words, done.stderr, ...done.stdout.trimEnd().split('\n')]).toEqual([words, expect.any(String), ...said]);
    expect(done.exitCode).toBe(0);
  }
  const { stdout } = await berth(['spare', 'ls', '-o', 'json']);
  expect(JSON.parse(stdout)).toMatchObject([{ metadata: { name: 'node-a' }, status: { phase: 'Releasing' } }]);
  gate.resolve();
  const shown = async (): Promise<unknown> =>
    JSON.parse((await berth(['spare', 'show', 'node-a', '-o', 'json'])).stdout);
  await expect.poll(shown).toMatchObject({ status: { phase: 'Released' } });
});

it('is as docs/spares.md says over HTTP', async () => {
  const [, body = ''] = /-d '(\{.*\})'/.exec(document) ?? [];
  const answer = await request('/spare/prepare', { method: 'POST', body });
  expect(answer.status).toBe(202);
  const { spare_id: id } = (await answer.json()) as { spare_id: string };
  const [, like = ''] = /```json\n(.*)\n```/.exec(document) ?? [];
  expect(Object.keys(JSON.parse(like) as object)).toEqual(['spare_id']);
  const shown = async () => (await (await request(`/spare/${id}`)).json()) as object;
  await expect
    .poll(shown)
    .toMatchObject({ status: 'ready', host: 'h1', ip: '10.0.0.9', held_until: expect.stringContaining('T') });
  const deleted = await request(`/spare/${id}?force=true`, { method: 'DELETE' });
  expect(await deleted.json()).toMatchObject({ status: 'released', spare_id: id });
});

it.each([
  [['prepare', '--provisioner', 'metal', '--cpus', '1', '--memory', '64MiB'], '--for'],
  [['prepare', '--provisioner', 'moon', '--cpus', '1', '--memory', '64MiB', '--for', '1h'], 'there are: vm, metal'],
  [['prepare', '--cpus', '1', '--memory', '64MiB', '--for', '1h'], 'image'],
  [['prepare', '--for', '1h', '--ready-tcp', '22', '--ready-http', 'http://{address}/'], 'only one of'],
  [['prepare', '--for', '1h', '--var', 'x'], 'NAME=VALUE'],
  [['prepare', '--for', '1h', '--ready-tcp', '0'], '--ready-tcp'],
  [['show', 'none-such'], 'none-such'],
  [['release', 'none-such'], 'berth spare ls'],
])('refuses %j', async (words, message) => {
  const done = await berth(['spare', ...words]);
  expect(done.exitCode).not.toBe(0);
  expect(done.stderr).toContain(message);
});

it('says why a spare will not be ready', async () => {
  const words = ['spare', 'prepare', '--provisioner', 'metal', '--cpus', '99', '--memory', '64MiB', '--for', '1h'];
  const done = await berth([...words, '--wait']);
  expect(done.exitCode).not.toBe(0);
  expect(done.stderr).toContain('No available nodes: 0 of 1 host: 1 InsufficientCpu');
});
