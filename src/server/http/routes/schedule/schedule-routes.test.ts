// Placement for other systems: results, room, bad input, and who needs no token.

import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemFetch } from '../../../../base/system.ts';
import { startTestServer, testRegistration } from '../../../testing.ts';
import { localCallerOf } from '../../identity/local-caller.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;

beforeAll(async () => {
  server = await startTestServer({ localCaller: localCallerOf('upgrades') });
  await server.client.create('pool', { metadata: { name: 'edge' }, spec: {} });
  for (const [name, spec] of Object.entries({
    plain: { pool: 'edge' },
    dedicated: { pool: 'edge', dedicated: true },
  })) {
    await server.client.create('host', { metadata: { name, labels: { ip: `ip-of-${name}` } }, spec });
    await server
      .agentClient(name)
      .register(testRegistration({ machineId: name, capacity: { VCPU: 4, MEMORY_MB: 8192 } }));
  }
});
afterAll(() => server.close());

interface Sent {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly token?: string | null;
}

async function send(path: string, { method, body, headers, token = 'operator' }: Sent = {}) {
  const response = await systemFetch(server.url + path, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, json: JSON.parse(await response.text()) };
}

const two = { requested_cpu: 2, requested_memory: 1024, requested_pool: 'edge' };

async function scheduled(body: unknown, sent: Sent = {}): Promise<string> {
  const { status, json } = await send('/schedule', { ...sent, body });
  expect(status).toBe(202);
  return json.task_id;
}

async function settled(
  id: string,
  path = '/result',
): Promise<{ status: string; error?: string; result?: { name: string } }> {
  await expect.poll(async () => (await send(`${path}/${id}`)).json.status).not.toBe('processing');
  return (await send(`${path}/${id}`)).json;
}

const release = (id: string) => send(`/schedule/${id}`, { method: 'DELETE' });

describe('room for other systems', () => {
  it('is held on a host, shown at both paths, and given back once', async () => {
    const id = await scheduled(two);
    const result = await settled(id);
    expect(result).toMatchObject({
      status: 'completed',
      result: { name: 'plain', ip: 'ip-of-plain', pool: 'edge', cpu: 2, memory: 1024, held_until: expect.any(String) },
    });
    expect(await settled(id, '/schedule')).toEqual(result);
    expect(await release(id)).toEqual({ status: 200, json: { status: 'released' } });
    expect(await release(id)).toEqual({ status: 200, json: { status: 'released' } });
    expect(await settled(id)).toEqual({ status: 'failed', error: 'the room is released: it was released' });
  });

  it('is never the same for two, nor on a dedicated host unless that was asked for', async () => {
    const ids = await Promise.all([1, 2, 3].map(() => scheduled(two)));
    const results = await Promise.all(ids.map((id) => settled(id)));
    expect(results.filter(({ result }) => result?.name === 'plain')).toHaveLength(2);
    expect(results.find(({ status }) => status === 'failed')?.error).toMatch(/^No available nodes: /);
    const dedicated = await scheduled({ ...two, dedicated: true });
    expect((await settled(dedicated)).result?.name).toBe('dedicated');
    await Promise.all([...ids, dedicated].map(release));
  });

  it('is the same for a repeated request, and not for another under its key', async () => {
    const headers = { 'idempotency-key': 'once' };
    const id = await scheduled(two, { headers });
    expect(await scheduled(two, { headers })).toBe(id);
    const other = await send('/schedule', { body: { ...two, requested_cpu: 1 }, headers });
    expect(other).toMatchObject({ status: 409, json: { error: { code: 'IdempotencyMismatch' } } });
    await release(id);
  });

  it('counts towards the quota until it is given back', async () => {
    await server.client.create('project', { metadata: { name: 'small' }, spec: { quota: { VCPU: 2 } } });
    const id = await scheduled(two, { headers: {} });
    await release(id);
    const first = (await send('/schedule?project=small', { body: two })).json.task_id;
    expect(await send('/schedule?project=small', { body: two })).toMatchObject({
      status: 403,
      json: { error: { code: 'QuotaExceeded' } },
    });
    await send(`/schedule/${first}?project=small`, { method: 'DELETE' });
    const second = await send('/schedule?project=small', { body: two });
    expect(second.status).toBe(202);
    await send(`/schedule/${second.json.task_id}?project=small`, { method: 'DELETE' });
  });
});

describe('bad input changes nothing', () => {
  it.each([
    ['no JSON', '{', undefined],
    ['an array', '[]', undefined],
    ['null', 'null', undefined],
    ['nothing asked', '{}', 'requested_cpu'],
    ['no CPU', { ...two, requested_cpu: 0 }, 'requested_cpu'],
    ['fewer than none', { ...two, requested_cpu: -1 }, 'requested_cpu'],
    ['a fraction', { ...two, requested_cpu: 1.5 }, 'requested_cpu'],
    ['too much', { ...two, requested_memory: 1e308 }, 'requested_memory'],
    ['a text', { ...two, requested_cpu: '4' }, 'requested_cpu'],
    ['another field', { ...two, requested_gpu: 1 }, 'requested_gpu'],
    ['a key of objects', '{"__proto__":{"requested_cpu":1},"requested_memory":64}', undefined],
    ['an empty pool', { ...two, requested_pool: '' }, 'requested_pool'],
    ['a name with NUL', { ...two, requested_pool: 'a\u0000b' }, 'requested_pool'],
    ['no truth', { ...two, dedicated: 'yes' }, 'dedicated'],
  ])('%s', async (_what, body, field) => {
    const { status, json } = await send('/schedule', { body });
    expect([status, json.error.code]).toEqual([400, 'InvalidRequest']);
    if (field !== undefined) expect(json.error.field).toBe(field);
  });

  it.each(['task_01k9zq4w7v3m5n8p2r6t9x1y3z', 'web', 'inst_01k9zq4w7v3m5n8p2r6t9x1y3z', 'task_..%2f..'])(
    'an id that is none: %s',
    async (id) => {
      for (const [path, method] of [
        [`/result/${id}`, 'GET'],
        [`/schedule/${id}`, 'DELETE'],
      ])
        expect((await send(path ?? '', { method: method ?? '' })).status).toBe(404);
    },
  );

  it('an unknown pool', async () => {
    const { status, json } = await send('/schedule', { body: { ...two, requested_pool: 'moon' } });
    expect([status, json.error.field]).toEqual([400, 'requested_pool']);
  });
});

describe('without a token', () => {
  it('a program on this machine uses its own project, and no other route', async () => {
    const { status, json } = await send('/schedule', { body: two, token: null });
    expect(status).toBe(202);
    expect((await send(`/result/${json.task_id}`, { token: null })).status).toBe(200);
    expect((await send(`/result/${json.task_id}?project=upgrades`, { token: null })).status).toBe(200);
    expect((await send('/schedule?project=default', { body: two, token: null })).status).toBe(403);
    expect((await send('/v1/tasks?project=upgrades', { token: null })).status).toBe(401);
    expect((await send('/schedule?project=upgrades', { body: two, token: 'wrong' })).status).toBe(401);
    expect(
      (await send('/schedule?project=upgrades', { body: two, token: null, headers: { origin: server.url } })).status,
    ).toBe(401);
    await send(`/schedule/${json.task_id}?project=upgrades`, { method: 'DELETE', token: null });
  });

  const usual = {
    method: 'POST',
    url: '/schedule',
    address: '127.0.0.1',
    headers: { host: 'localhost:7070', 'content-type': 'application/json' },
  };
  const asked = (changes: { method?: string; url?: string; address?: string; headers?: Record<string, string> }) => {
    const { method, url, address, headers } = {
      ...usual,
      ...changes,
      headers: { ...usual.headers, ...changes.headers },
    };
    return localCallerOf('p')({
      method,
      url,
      headers,
      socket: { remoteAddress: address },
    } as unknown as IncomingMessage);
  };

  it.each([
    [{}],
    [{ address: '::1' }],
    [{ address: '::ffff:127.0.0.1' }],
    [{ headers: { host: '127.0.0.1' } }],
    [{ headers: { host: '[::1]:7070' } }],
    [{ headers: { 'content-type': 'application/json; charset=utf-8' } }],
    [{ method: 'GET', url: '/result/task_1?project=p' }],
    [{ method: 'DELETE', url: '/schedule/task_1' }],
  ])('is let in: %j', (changes) => {
    expect(asked(changes)).toEqual({ kind: 'intake', name: 'schedule', project: 'p' });
  });

  it.each([
    [{ address: '10.0.0.1' }],
    [{ address: '127.0.0.1.evil' }],
    [{ headers: { host: 'rebound.example' } }],
    [{ headers: { host: '127.0.0.1.evil.example' } }],
    [{ headers: { host: '' } }],
    [{ headers: { 'content-type': 'text/plain' } }],
    [{ headers: { 'content-type': 'application/json-patch' } }],
    [{ headers: { origin: 'null' } }],
    [{ headers: { referer: 'https://evil.example' } }],
    [{ headers: { 'sec-fetch-site': 'cross-site' } }],
    [{ headers: { 'x-forwarded-for': '10.0.0.1' } }],
    [{ url: '/v1/tasks' }],
    [{ url: '/schedules' }],
    [{ url: '/schedule/../v1/tasks' }],
    [{ url: '/schedule/a/b' }],
    [{ url: '//schedule' }],
  ])('is not: %j', (changes) => {
    expect(asked(changes)).toBeUndefined();
  });
});
