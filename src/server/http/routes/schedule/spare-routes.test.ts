// Spares for other systems: their life by HTTP, 100 requests for one host, quotas, bad input, and the news of each step.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CloudEvent } from '../../../../api/news/cloud-event.ts';
import { parse } from '../../../../api/parse.ts';
import { systemFetch } from '../../../../base/system.ts';
import type { Provisioner } from '../../../spares/provisioner.ts';
import { startTestServer, testRegistration } from '../../../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;

/** Answers when a test says so; any other id is made at once. */
const metal: Provisioner = {
  provision: ({ variables }) =>
    Promise.resolve(
      variables['fail'] === undefined
        ? { is: 'done', name: 'node-9', address: '10.0.0.9' }
        : { is: 'failed', why: variables['fail'], refused: true },
    ),
  release: () => Promise.resolve({ is: 'done' }),
};

beforeAll(async () => {
  const probe = () => Promise.resolve({ ready: true, message: 'it answers' });
  server = await startTestServer({ spares: { provisioners: new Map([['metal', metal]]), probe } });
  await server.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'https://images.example/tiny.qcow2' },
  });
  await server.client.create('pool', { metadata: { name: 'edge' }, spec: {} });
  await server.client.create('pool', { metadata: { name: 'outside' }, spec: {} });
  await server.client.create('host', { metadata: { name: 'h1' }, spec: { pool: 'edge' } });
  await server
    .agentClient('h1')
    .register(testRegistration({ machineId: 'h1', capacity: { VCPU: 8, MEMORY_MB: 16_384 } }));
});
afterAll(() => server.close());

interface Sent {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

async function send(path: string, { method, body, headers }: Sent = {}) {
  const response = await systemFetch(server.url + path, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: 'Bearer operator',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, json: JSON.parse(await response.text()) };
}

const two = { requested_cpu: 2, requested_memory: 64, pool: 'edge', provisioner: 'metal' };

async function prepared(body: object = two, sent: Sent = {}, query = ''): Promise<string> {
  const { status, json } = await send(`/spare/prepare${query}`, { ...sent, body });
  expect([status, json]).toEqual([202, { spare_id: expect.stringMatching(/^spare_/) }]);
  return json.spare_id;
}

const shown = async (id: string, query = '') => (await send(`/spare/${id}${query}`)).json;
const settled = async (id: string, query = '') => {
  await expect.poll(async () => (await shown(id, query)).status).toMatch(/ready|failed|released|unknown/);
  return shown(id, query);
};
const release = (id: string, query = '') => send(`/spare/${id}${query}`, { method: 'DELETE' });
const released = async (id: string, query = '') => {
  expect((await release(id, query)).status).toBe(200);
  await expect.poll(async () => (await shown(id, query)).status).toMatch(/released|failed/);
};

describe('spares for other systems', () => {
  it('are made, listed, shown, and released once', async () => {
    const id = await prepared({ ...two, ready: { tcp: { port: 22 } }, ttl_s: 600 });
    const spare = await settled(id);
    expect(spare).toMatchObject({ spare_id: id, status: 'ready', host: 'h1', ip: '10.0.0.9', provisioner: 'metal' });
    expect(Date.parse(spare.held_until)).toBeGreaterThan(0);
    expect((await send('/spare')).json.spares).toEqual([spare]);
    await released(id);
    const after = await shown(id);
    expect(after).toMatchObject({ status: 'released', held_until: null });
    expect(await release(id)).toEqual({ status: 200, json: after });
  });

  it('get what fits, when 100 are asked for at once on one host', async () => {
    const ids = await Promise.all(Array.from({ length: 100 }, () => prepared()));
    const spares = await Promise.all(ids.map((id) => settled(id)));
    const ready = spares.filter(({ status }) => status === 'ready');
    expect(new Set(ids).size).toBe(100);
    expect(ready).toHaveLength(4); // 8 CPUs, 2 for each
    for (const { status, message } of spares)
      if (status !== 'ready')
        expect([status, message]).toEqual(['failed', expect.stringMatching(/^No available nodes: /)]);
    await Promise.all(ready.map(({ spare_id: id }) => released(id)));
  });

  it('are the same for a repeated request, and not for another under its key', async () => {
    const headers = { 'idempotency-key': 'once' };
    const id = await prepared(two, { headers });
    expect(await prepared(two, { headers })).toBe(id);
    const other = await send('/spare/prepare', { body: { ...two, requested_cpu: 1 }, headers });
    expect(other).toMatchObject({ status: 409, json: { error: { code: 'IdempotencyMismatch' } } });
    await settled(id);
    await released(id);
  });

  it('count towards the quota until they are released', async () => {
    await server.client.create('project', { metadata: { name: 'small' }, spec: { quota: { VCPU: 2 } } });
    const query = '?project=small';
    const first = await prepared(two, {}, query);
    const refused = await send(`/spare/prepare${query}`, { body: two });
    expect(refused).toMatchObject({ status: 403, json: { error: { code: 'QuotaExceeded' } } });
    await settled(first, query);
    await released(first, query);
    const second = await prepared(two, {}, query);
    await settled(second, query);
    await released(second, query);
  });

  it('say why they could not be made, and hold nothing then', async () => {
    const id = await prepared({ ...two, variables: { fail: 'no such rack' } });
    expect(await settled(id)).toMatchObject({ status: 'failed', message: 'no such rack', host: 'h1' });
    const { items } = await server.client.list('task');
    expect(items.filter(({ status }) => status.phase === 'Placed')).toEqual([]);
  });

  it('fail with the provisioner vm when no host has room for the instance', async () => {
    const id = await prepared({ ...two, requested_cpu: 9, provisioner: 'vm', image: 'tiny' });
    expect(await settled(id)).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/^No available nodes: /),
    });
    await expect.poll(async () => (await server.client.list('instance')).items).toEqual([]);
  });

  it('of the provisioner vm are never on hosts of an inventory, and others are', async () => {
    await server.client.create('inventory', { metadata: { name: 'rack' }, spec: { source: { kind: 'push' } } });
    const node = { name: 'n1', cpu: 8, memory: 16_384, storage: 100, usage_cpu: 0, usage_mem: 0, pool: 'outside' };
    await send('/v1/inventories/rack/nodes', { method: 'PUT', body: [{ ...node, ip: '10.0.0.7' }] });
    const metalId = await prepared({ ...two, pool: 'outside' });
    expect(await settled(metalId)).toMatchObject({ status: 'ready', host: 'n1' });
    const vm = await prepared({ ...two, pool: 'outside', provisioner: 'vm', image: 'tiny' });
    expect(await settled(vm)).toMatchObject({ status: 'failed', host: null });
    await released(metalId);
  });
});

it('tells receivers of each step', async () => {
  const over = new AbortController();
  const response = await systemFetch(`${server.url}/v1/events?watch=true`, {
    headers: {
      authorization: 'Bearer operator',
      accept: 'text/event-stream',
      'last-event-id': String(server.plane.decider.cache.revision),
    },
    signal: over.signal,
  });
  const id = await prepared();
  await settled(id);
  await released(id);
  let text = '';
  for await (const piece of response.body ?? []) {
    text += Buffer.from(piece).toString();
    if (text.includes('"type":"berth.v1.spare.Released"')) break;
  }
  over.abort();
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => parse(CloudEvent, JSON.parse(json)));
  const own = events.filter(({ partitionkey }) => partitionkey === id);
  expect(own.map(({ type }) => type.replace('berth.v1.spare.', ''))).toEqual([
    'Accepted',
    'Provisioning',
    'Ready',
    'Releasing',
    'Released',
  ]);
});

describe('bad input changes nothing', () => {
  it.each([
    ['no JSON', '{', undefined],
    ['an array', '[]', undefined],
    ['nothing asked', '{}', 'requested_cpu'],
    ['no CPU', { ...two, requested_cpu: 0 }, 'requested_cpu'],
    ['a fraction', { ...two, requested_cpu: 1.5 }, 'requested_cpu'],
    ['a text', { ...two, requested_memory: '64' }, 'requested_memory'],
    ['another field', { ...two, requested_gpu: 1 }, 'requested_gpu'],
    ['no provisioner', { ...two, provisioner: '' }, 'provisioner'],
    ['a provisioner that no server has', { ...two, provisioner: 'moon' }, 'provisioner'],
    ['an instance without an image', { ...two, provisioner: 'vm' }, 'image'],
    ['an unknown pool', { ...two, pool: 'moon' }, 'pool'],
    ['no time', { ...two, ttl_s: 0 }, 'ttl_s'],
    ['for ever', { ...two, ttl_s: 1e308 }, 'ttl_s'],
    ['no question', { ...two, ready: {} }, 'ready'],
    ['two questions', { ...two, ready: { tcp: { port: 22 }, http: { url: 'http://x/' } } }, 'ready'],
    ['a port that is none', { ...two, ready: { tcp: { port: 0 } } }, 'ready.tcp.port'],
    ['a URL that is none', { ...two, ready: { http: { url: 'file:///etc/passwd' } } }, 'ready.http.url'],
    ['a variable that is none', { ...two, variables: { 'a b': '1' } }, undefined],
    ['a variable that is a number', { ...two, variables: { a: 1 } }, 'variables.a'],
    ['a name with NUL', { ...two, name: 'a\u0000b' }, 'name'],
  ])('%s', async (_what, body, field) => {
    const before = (await send('/spare')).json;
    const { status, json } = await send('/spare/prepare', { body });
    expect([status, json.error?.code], JSON.stringify(json)).toEqual([400, 'InvalidRequest']);
    if (field !== undefined) expect(json.error.field).toBe(field);
    expect((await send('/spare')).json).toEqual(before);
  });

  it.each(['spare_01k9zq4w7v3m5n8p2r6t9x1y3z', 'web', 'task_01k9zq4w7v3m5n8p2r6t9x1y3z', 'spare_..%2f..'])(
    'an id that is none: %s',
    async (id) => {
      expect((await send(`/spare/${id}`)).status).toBe(404);
      expect((await release(id)).status).toBe(404);
    },
  );
});
