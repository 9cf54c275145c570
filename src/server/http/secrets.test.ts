// Secrets through the API: written, used by guests of one host, and shown by nothing.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { randomSecret } from '../../base/system.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { parseMasterKeys } from '../sealing/master-keys.ts';
import { openSealing } from '../sealing/open-sealing.ts';
import { newMasterKey } from '../sealing/read-master-keys.ts';
import { startTestServer, testRegistration } from '../testing.ts';

const planted = 'planted-8f1c2d';
const stored = createMemoryStore();
let server: Awaited<ReturnType<typeof startTestServer>>;
let watched = '';
const stop = new AbortController();

beforeAll(async () => {
  const { store } = await openSealing(stored, { masterKeys: parseMasterKeys(newMasterKey()), nowMs: 1, randomSecret });
  server = await startTestServer({ store });
  const { client } = server;
  void (async () => {
    for await (const change of client.watch('secret', { revision: 1 }, stop.signal)) watched += JSON.stringify(change);
  })().catch(() => {}); // ended by the test
  await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  await server.agentClient('h1').register(testRegistration());
  await server.agentClient('h2').register(testRegistration({ machineId: 'machine-2' }));
});
afterAll(async () => {
  stop.abort();
  await server.close();
});

const run = {
  script: 'true',
  env: { PASSWORD: { secret: 'db', key: 'password' }, PLAIN: 'plain' },
  artifacts: [],
  timeLimitMs: 60_000,
  graceMs: 1_000,
  holdOnFailure: false,
};

it('is written and never returned', async () => {
  const { client } = server;
  const created = await client.create('secret', { metadata: { name: 'db' }, spec: { values: { password: planted } } });
  expect(created).toMatchObject({ status: { version: 1 } });
  const answers = [
    created,
    await client.get('secret', 'db'),
    await client.list('secret'),
    await client.replace('secret', 'db', {
      metadata: {},
      spec: { description: 'x', values: { user: `${planted}-2` } },
    }),
    await client.list('event'),
  ];
  await expect.poll(() => watched).toContain('"version":2');
  for (const answer of [JSON.stringify(answers), watched]) {
    expect(answer).toContain('"password"');
    expect(answer).not.toContain(planted);
  }
  const rows = (await stored.list('')).entries.map(({ value }) => Buffer.from(value).toString()).join('\n');
  expect(rows).not.toContain(planted);
});

it('reaches the host of the guest that names it, and no answer about the instance', async () => {
  const { client } = server;
  const made = await client.create('instance', { metadata: { name: 'a' }, spec: { image: 'tiny', run } });
  expect(made.spec.run?.env).toEqual(run.env);
  await expect.poll(async () => (await client.get('instance', 'a')).status.host).toMatch(/^h[12]$/);
  const { host = '' } = (await client.get('instance', 'a')).status;
  const told = async (name: string): Promise<string> => {
    const over = new AbortController();
    const agent = server.agentClient(name);
    const { epoch } = await agent.register(testRegistration(name === 'h2' ? { machineId: 'machine-2' } : {}));
    const { value } = await agent.assignments(epoch, over.signal)[Symbol.asyncIterator]().next();
    over.abort();
    return JSON.stringify(value);
  };
  expect(await told(host)).toContain(`"secrets":{"db":{"password":"${planted}"}}`);
  expect(await told(host === 'h1' ? 'h2' : 'h1')).not.toContain(planted);
  const shown = [await client.get('instance', 'a'), await client.list('instance'), await client.explain('a')];
  expect(JSON.stringify(shown)).not.toContain(planted);
});

it('reaches the host as the credential of an image, and no answer', async () => {
  const { client } = server;
  const imageCredentials = [{ prefix: 'registry.example.com/team', username: 'robot', secret: 'db', key: 'password' }];
  await client.create('instance', { metadata: { name: 'c' }, spec: { image: 'tiny', imageCredentials } });
  await expect.poll(async () => (await client.get('instance', 'c')).status.host).toMatch(/^h[12]$/);
  const { spec, status } = await client.get('instance', 'c');
  expect(spec.imageCredentials).toEqual(imageCredentials);
  const agent = server.agentClient(status.host ?? '');
  const { epoch } = await agent.register(testRegistration(status.host === 'h2' ? { machineId: 'machine-2' } : {}));
  const over = new AbortController();
  const { value } = await agent.assignments(epoch, over.signal)[Symbol.asyncIterator]().next();
  over.abort();
  const told = JSON.stringify(value);
  expect(told).toContain(`"imageCredentials":${JSON.stringify(imageCredentials)}`);
  expect(told).toContain(`"secrets":{"db":{"password":"${planted}"}}`);
  const shown = [await client.get('instance', 'c'), await client.list('instance'), await client.explain('c')];
  expect(JSON.stringify(shown)).not.toContain(planted);
  await expect(client.delete('secret', 'db')).rejects.toMatchObject({ code: 'Conflict' });
});

it('is refused to an instance that names what does not exist', async () => {
  const env = { X: { secret: 'none', key: 'k' } };
  await expect(
    server.client.create('instance', { metadata: { name: 'b' }, spec: { image: 'tiny', run: { ...run, env } } }),
  ).rejects.toMatchObject({ code: 'InvalidRequest', field: 'spec.run.env.X' });
});

it('cannot be created where nothing is encrypted', async () => {
  const plain = await startTestServer();
  await expect(
    plain.client.create('secret', { metadata: { name: 'db' }, spec: { values: { password: planted } } }),
  ).rejects.toMatchObject({ code: 'Unavailable' });
  await plain.close();
});
