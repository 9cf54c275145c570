// Bad input at every face for other programs: each is refused with a code, the field where there is one, and a short message. Nothing is
// written, and the server goes on serving.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createUserClient, type UserClient } from '../src/api/client/user-client.ts';
import { parse } from '../src/api/parse.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemFetch } from '../src/base/system.ts';
import { ServerConfig } from '../src/server/config.ts';
import { type RunningServer, startServer } from '../src/server/run.ts';

let directory: string;
let server: RunningServer;
let api: UserClient;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-bad-input-'));
  const config = parse(ServerConfig, {
    ...{ listen: '127.0.0.1:0', dataDirectory: join(directory, 'server'), mcp: 'write' },
    scheduleWithoutToken: 'default',
  });
  server = await startServer(config, { log: silentLogger });
  api = createUserClient({ fetch: systemFetch, url: server.url, token: server.operatorToken });
  await api.create('inventory', { metadata: { name: 'lab' }, spec: { source: { kind: 'push' } } });
  await api.pushNodes('lab', [{ name: 'm1', cpu: 64, memory: 65_536, pool: 'metal' }]);
  await api.create('secret', {
    metadata: { name: 'hooks' },
    spec: { description: '', values: { empty: 'whsec_', good: `whsec_${Buffer.alloc(32, 7).toString('base64')}` } },
  });
});
afterAll(async () => {
  await server?.close();
  await rm(directory, { recursive: true, force: true });
});

interface Face {
  readonly method: 'POST' | 'PUT';
  readonly path: string;
  readonly good: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const accept = 'application/json, text/event-stream';
const task = { requested_cpu: 1, requested_memory: 64 };
const node = { name: 'm1', cpu: 64, memory: 65_536 };
const secrets = [{ secret: 'hooks', key: 'good' }];
const webhook = { metadata: { name: 'bad' }, spec: { url: 'https://receiver.example/', secrets } };
const inventory = { metadata: { name: 'bad' }, spec: { source: { kind: 'push' } } };
const faces = {
  schedule: { method: 'POST', path: '/schedule', good: task },
  spare: { method: 'POST', path: '/spare/prepare', good: { ...task, provisioner: 'none' } },
  webhook: { method: 'POST', path: '/v1/webhooks', good: webhook },
  inventory: { method: 'POST', path: '/v1/inventories', good: inventory },
  nodes: { method: 'PUT', path: '/v1/inventories/lab/nodes', good: [node] },
  mcp: {
    ...{ method: 'POST', path: '/mcp', headers: { accept } },
    good: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } },
  },
} as const satisfies Record<string, Face>;
type FaceName = keyof typeof faces;
const allFaces = Object.keys(faces) as FaceName[]; // of the object above

interface Answered {
  readonly status: number;
  readonly code: string | undefined;
  readonly field: string | undefined;
  readonly message: string;
}

/** A body in chunks that never ends. */
const endless = Symbol('endless');

interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly body?: string | Buffer | typeof endless;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An empty text removes a header. */
const withoutEmpty = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));

/** Without a library that would mend what is wrong. */
async function send({ method = 'POST', path, body, headers = {} }: Sent): Promise<Answered> {
  const authorization = `Bearer ${server.operatorToken}`;
  const asked = request(`${server.url}${path}`, {
    method,
    headers: withoutEmpty({ authorization, 'content-type': 'application/json', ...headers }),
  });
  const answered = once(asked, 'response');
  asked.on('error', () => {}); // the server ends what it does not want to read
  if (body === endless) {
    const more = (): void => {
      while (!asked.destroyed && asked.write(Buffer.alloc(65_536, ' ')));
    };
    asked.on('drain', more);
    more();
  } else asked.end(body);
  const [response] = await answered;
  let text = '';
  for await (const piece of response) text += piece;
  asked.destroy();
  const { error } = JSON.parse(text === '' ? '{}' : text);
  return { status: response.statusCode, code: error?.code, field: error?.field, message: error?.message ?? text };
}

const revision = async (): Promise<number> => (await api.list('image')).revision;

/** Refused, shortly, and nothing was written. */
async function refused(sent: Sent): Promise<Omit<Answered, 'message'>> {
  const before = await revision();
  const { message, ...answered } = await send(sent);
  expect(message.length).toBeLessThan(600);
  expect(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(message)).toBe(false);
  expect(await revision()).toBe(before);
  return answered;
}

const at = (name: FaceName, body: string | Buffer | typeof endless, headers = {}): Sent => {
  const face: Face = faces[name];
  return { method: face.method, path: face.path, body, headers: { ...face.headers, ...headers } };
};
const goodText = (name: FaceName): string => JSON.stringify(faces[name].good);
/** The first `{` becomes `{` and this. */
const beginning = (name: FaceName, more: string): string => goodText(name).replace('{', `{${more},`);

describe('a body, at every face', () => {
  const rows: readonly (readonly [string, (name: FaceName) => Sent, Partial<Answered>])[] = [
    ['1: is not JSON', (name) => at(name, '{"a":'), { status: 400, code: 'InvalidRequest' }],
    ['2: has 11 MB', (name) => at(name, Buffer.alloc(11 << 20, ' ')), { status: 413, code: 'PayloadTooLarge' }],
    [
      '3: is nested 10,000 deep',
      (name) => at(name, `${'['.repeat(10_000)}${']'.repeat(10_000)}`),
      { status: 400, code: 'InvalidRequest' },
    ],
    [
      '4: has a key __proto__',
      (name) => at(name, beginning(name, '"__proto__":{"requested_cpu":1}')),
      { status: 400, code: 'InvalidRequest', field: '__proto__' },
    ],
    [
      '5: has a key twice',
      (name) => at(name, beginning(name, '"x":1,"x":2')),
      { status: 400, code: 'InvalidRequest', field: 'x' },
    ],
    [
      '16: begins with a BOM',
      (name) => at(name, `\ufeff${goodText(name).slice(0, -1)}`),
      { status: 400, code: 'InvalidRequest' },
    ],
    [
      '26: is compressed',
      (name) => at(name, gzipSync(goodText(name)), { 'content-encoding': 'gzip' }),
      { status: 415, code: 'UnsupportedMediaType' },
    ],
    ['27: comes in chunks without an end', (name) => at(name, endless), { status: 413, code: 'PayloadTooLarge' }],
    [
      '28: is of another type',
      (name) => at(name, goodText(name), { 'content-type': 'text/plain' }),
      { status: 415, code: 'UnsupportedMediaType' },
    ],
  ];
  for (const [what, ask, expected] of rows)
    it.each(allFaces)(`${what}: %s`, async (name) => {
      expect(await refused(ask(name))).toMatchObject(expected);
    });
});

/** JSON as text, for what `JSON.stringify` cannot write. */
const json = (value: unknown): string => JSON.stringify(value);
const schedule = (more: object): Sent => at('schedule', json({ ...task, ...more }));
const spare = (more: object): Sent => at('spare', json({ ...task, provisioner: 'none', ...more }));
const hook = (spec: object, metadata: object = {}): Sent =>
  at('webhook', json({ metadata: { name: 'bad', ...metadata }, spec: { ...webhook.spec, ...spec } }));
const nodes = (list: unknown): Sent => at('nodes', typeof list === 'string' ? list : json(list));
const mcp = (body: unknown, headers = {}): Sent => at('mcp', json(body), headers);
const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
const huge = 'x'.repeat(900_000);

const invalid = (field?: string): Partial<Answered> => ({
  status: 400,
  code: 'InvalidRequest',
  ...(field === undefined ? {} : { field }),
});

describe('a value', () => {
  const numbers = [0, -1, 1.5, 1e308, '4', null];
  for (const value of numbers)
    it.each(['requested_cpu', 'requested_memory'])(`6–10: ${String(value)} as %s`, async (field) => {
      expect(await refused(schedule({ [field]: value }))).toMatchObject(invalid(field));
      expect(await refused(spare({ [field]: value }))).toMatchObject(invalid(field));
    });

  const rows: readonly (readonly [string, () => Sent, Partial<Answered>])[] = [
    ['11: a pool that there is not', () => schedule({ requested_pool: 'moon' }), invalid('requested_pool')],
    ['11: a provisioner that there is not', () => spare({}), invalid('provisioner')],
    ['12: no pool', () => schedule({ requested_pool: '' }), invalid('requested_pool')],
    ['12: no pool of a spare', () => spare({ pool: '' }), invalid('pool')],
    [
      '12: no pool of an inventory',
      () => at('inventory', json({ ...inventory, spec: { ...inventory.spec, pool: '' } })),
      invalid('spec.pool'),
    ],
    ['17: half a character', () => schedule({ requested_pool: '\ud800' }), invalid('requested_pool')],
    ['17: half a character in a text', () => hook({ description: 'a\ud800b' }), invalid('spec.description')],
    ['18: NUL in a name', () => hook({}, { name: 'a\u0000b' }), invalid('metadata.name')],
    ['18: NUL in a pool', () => schedule({ requested_pool: 'a\u0000b' }), invalid('requested_pool')],
    ['18: NUL in the name of a node', () => nodes([{ ...node, name: 'a\u0000b' }]), invalid('body')],
    ['19: a name of 900 kB', () => hook({}, { name: huge }), invalid('metadata.name')],
    ['19: a pool of 900 kB', () => schedule({ requested_pool: huge }), invalid('requested_pool')],
    ['19: a field of 900 kB', () => schedule({ [huge]: 1 }), invalid()],
    ['19: a node of 9 MB', () => nodes([{ ...node, name: 'x'.repeat(9_000_000) }]), invalid('body')],
    ['20: more used than there is', () => nodes([{ ...node, usage_cpu: 65 }]), invalid('body')],
    ['21: NaN', () => nodes('[{"name":"m1","cpu":NaN,"memory":1}]'), invalid('body')],
    ['21: NaN in words', () => nodes([{ ...node, cpu: 'NaN' }]), invalid('body')],
    ['22: null for a list', () => nodes('null'), invalid('body')],
    ['23: an object for a list', () => nodes({ nodes: [node] }), invalid('body')],
    ['24: two names that differ by case', () => nodes([node, { ...node, name: 'M1' }]), invalid('body')],
    ['25: an address that is none', () => nodes([{ ...node, ip: '999.1.1.1' }]), invalid('body')],
    ['32: a user in a URL', () => hook({ url: 'https://user:open@receiver.example/' }), invalid('spec.url')],
    [
      '32: a user in the URL of a source',
      () => at('inventory', json({ ...inventory, spec: { source: { kind: 'http', url: 'http://a:b@h/' } } })),
      invalid('spec.source.url'),
    ],
    [
      '34: a secret that there is not',
      () => hook({ secrets: [{ secret: 'hooks', key: 'none' }] }),
      invalid('spec.secrets[0]'),
    ],
    ['36: CRLF in a label', () => hook({}, { labels: { team: 'a\r\nX-Evil: 1' } }), invalid('metadata.labels.team')],
    ['36: CRLF in a URL', () => hook({ url: 'https://receiver.example/\r\nX-Evil: 1' }), invalid('spec.url')],
  ];
  it.each(rows)('%s', async (_what, ask, expected) => {
    expect(await refused(ask())).toMatchObject(expected);
  });
});

describe('an id', () => {
  it.each(['task_01k9zq4w7v3m5n8p2r6t9x1y3z', 'web', '..%2f..', '%00', huge.slice(0, 10_000)])(
    '13: that is none: %.40s',
    async (id) => {
      for (const path of [`/result/${id}`, `/schedule/${id}`, `/spare/${id}`]) {
        const { status } = await send({ method: 'GET', path });
        expect([400, 404, 414]).toContain(status);
      }
    },
  );

  it('14: is released twice, to the same effect', async () => {
    const { message } = await send(at('schedule', json({ ...task, requested_pool: 'metal' })));
    const { task_id: id } = JSON.parse(message);
    for (let again = 0; again < 2; again++)
      expect(await send({ method: 'DELETE', path: `/schedule/${id}` })).toMatchObject({ status: 200 });
  });
});

it('15: a key of another request is refused', async () => {
  const headers = { 'idempotency-key': 'once' };
  expect((await send(at('schedule', json(task), headers))).status).toBe(202);
  expect(await refused(at('schedule', json({ ...task, requested_cpu: 2 }), headers))).toMatchObject({
    status: 409,
  });
});

describe('MCP', () => {
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } };
  const call = (name: string, given: object) => ({
    ...list,
    method: 'tools/call',
    params: { _meta: meta, name, arguments: given },
  });
  it.each<[string, () => Sent, Partial<Answered>]>([
    ['22: null', () => mcp(null), { status: 400 }],
    ['37: a batch', () => mcp([list, list]), { status: 400 }],
    ['39: a header of another method', () => mcp(list, { ...modern, 'mcp-method': 'tools/call' }), { status: 400 }],
    [
      '39: a header of another tool',
      () => mcp(call('list', { kind: 'image' }), { ...modern, 'mcp-method': 'tools/call', 'mcp-name': 'run' }),
      { status: 400 },
    ],
    [
      '40: a page of another site',
      () => mcp(list, { origin: 'https://evil.example' }),
      { status: 403, code: 'Forbidden' },
    ],
    ['40: a name that is not ours', () => mcp(list, { host: 'rebound.example' }), { status: 403, code: 'Forbidden' }],
  ])('%s', async (_what, ask, expected) => {
    expect(await refused(ask())).toMatchObject(expected);
  });
});

describe('40: a program on this machine without a token', () => {
  it.each<[string, Record<string, string>, number]>([
    ['is served', {}, 202],
    ['is not, with the Origin of a page', { origin: 'http://localhost:3000' }, 401],
    ['is not, by a name that is not ours', { host: 'rebound.example' }, 401],
    ['is not, without JSON', { 'content-type': 'text/plain' }, 401],
  ])('%s', async (_what, headers, status) => {
    expect((await send(at('schedule', json(task), { authorization: '', ...headers }))).status).toBe(status);
  });
});
