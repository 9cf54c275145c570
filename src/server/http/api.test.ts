import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemFetch } from '../../base/system.ts';
import { startTestServer, testRegistration } from '../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;

beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'file:///tmp/tiny.qcow2', aliases: ['smallest'], defaults: { cpus: 1, memoryMiB: 512 } },
  });
});
afterAll(() => server.close());

async function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await systemFetch(server.url + path, {
    method,
    headers: {
      authorization: 'Bearer operator',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, json: text ? JSON.parse(text) : undefined };
}

const instance = (spec: object, metadata: object = {}) => ({ metadata, spec: { image: 'tiny', ...spec } });

describe('bad input is refused with its field, and changes nothing', () => {
  const rows: [name: string, body: unknown, field: string, text: RegExp][] = [
    ['an unknown field', instance({ memoryMib: 5 }), 'spec.memoryMib', /did you mean "memoryMiB"/],
    ['an unknown field of the body', { ...instance({}), extra: 1 }, 'extra', /unknown field/],
    ['status in a create', { ...instance({}), status: { phase: 'Running' } }, 'status', /unknown field/],
    ['an id in a create', instance({}, { id: 'inst_x' }), 'metadata.id', /unknown field/],
    ['a text for a number', instance({ cpus: '4' }), 'spec.cpus', /whole number/],
    ['a fraction', instance({ cpus: 1.5 }), 'spec.cpus', /whole number/],
    ['zero CPUs', instance({ cpus: 0 }), 'spec.cpus', />= 1/],
    ['a negative number', instance({ memoryMiB: -1 }), 'spec.memoryMiB', />= 16/],
    ['no image', { spec: {} }, 'spec.image', /missing/],
    ['an unknown image', instance({ image: 'tinny' }), 'spec.image', /did you mean "tiny"/],
    ['an unknown size', instance({ size: 'huge' }), 'spec.size', /no size/],
    ['an upper-case name', instance({}, { name: 'Web' }), 'metadata.name', /lower-case/],
    ['a path for a name', instance({}, { name: '../etc' }), 'metadata.name', /lower-case/],
    ['an empty name', instance({}, { name: '' }), 'metadata.name', /lower-case/],
    ['64 characters', instance({}, { name: 'a'.repeat(64) }), 'metadata.name', /./],
    [
      'a port over the range',
      instance({ ports: [{ guestPort: 80, hostPort: 65_536 }] }),
      'spec.ports[0].hostPort',
      /65535/,
    ],
    [
      'one host port twice',
      instance({
        ports: [
          { guestPort: 80, hostPort: 8080 },
          { guestPort: 81, hostPort: 8080 },
        ],
      }),
      'spec.ports[1].hostPort',
      /twice/,
    ],
    [
      'a key with options',
      instance({ sshKeys: ['command="x" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ'] }),
      'spec.sshKeys[0]',
      /public key/,
    ],
    [
      'two keys in one',
      instance({ sshKeys: [`ssh-ed25519 ${'A'.repeat(68)}\nssh-ed25519 ${'A'.repeat(68)}`] }),
      'spec.sshKeys[0]',
      /public key/,
    ],
    ['a resource class of the system', instance({ resources: { VCPU: 4 } }), 'spec.resources.VCPU', /./],
    ['an unknown restart policy', instance({ restartPolicy: 'Sometimes' }), 'spec.restartPolicy', /Never, OnFailure/],
    ['a label with a space', instance({}, { labels: { a: 'b c' } }), 'metadata.labels.a', /./],
    [
      '10,000 labels',
      instance({}, { labels: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, 'v'])) }),
      'metadata.labels',
      /64/,
    ],
    [
      'a trait both required and forbidden',
      instance({ placement: { traits: { required: ['CUSTOM_A'], forbidden: ['CUSTOM_A'] } } }),
      'spec.placement.traits.required[0]',
      /both required and forbidden/,
    ],
    [
      'labels that no host can have',
      instance({
        placement: {
          hostLabels: { zone: 'a' },
          hostRules: [{ key: 'zone', operator: 'NotIn', values: ['a'] }],
        },
      }),
      'spec.placement.hostRules[0]',
      /no host can have/,
    ],
    ['a pool that is not', instance({ placement: { pool: 'nope' } }), 'spec.placement.pool', /there is no pool "nope"/],
    [
      'half a query',
      instance({ placement: { query: 'required=HW_A' } }),
      'spec.placement.query',
      /resources is missing/,
    ],
    ['a prototype key', '{"spec":{"image":"tiny","__proto__":{"x":1}}}', '__proto__', /not taken/],
    ['a key given twice', '{"spec":{"image":"tiny","cpus":1,"cpus":64}}', 'cpus', /given twice/],
    ['a key given twice, once in escapes', '{"spec":{},"sp\\u0065c":{}}', 'spec', /given twice/],
    ['nesting without end', `{"spec":${'['.repeat(50_000)}${']'.repeat(50_000)}}`, 'body', /nested deeper/],
    ['half a character', '{"spec":{"image":"a\\ud83d"}}', 'spec.image', /half of a UTF-16 surrogate pair/],
    ['half a character in a list', '{"spec":{"sshKeys":["\\uDE00x"]}}', 'spec.sshKeys[0]', /surrogate pair/],
    ['half a character in a key', '{"spec":{"\\ud83d":1}}', 'spec', /surrogate pair/],
    ['no JSON', '{"spec":', 'body', /not JSON/],
    ['an array', [], 'body', /./],
  ];
  for (const [name, body, field, text] of rows) {
    it(name, async () => {
      const before = server.plane.decider.cache.revision;
      const { status, json } = await send('POST', '/v1/instances', body);
      expect(json).toMatchObject({ error: { code: 'InvalidRequest', field } });
      expect(json.error.message).toMatch(text);
      expect(status).toBe(400);
      expect(server.plane.decider.cache.revision).toBe(before);
    });
  }

  it('refuses bodies that are too large, compressed, or of another type', async () => {
    expect((await send('POST', '/v1/instances', instance({ userData: 'x'.repeat(1 << 20) }))).status).toBe(413);
    expect((await send('POST', '/v1/instances', '{}', { 'content-encoding': 'gzip' })).status).toBe(415);
    expect((await send('POST', '/v1/instances', '{}', { 'content-type': 'text/plain' })).status).toBe(415);
  });

  it('names an unknown query parameter and a wrong value', async () => {
    expect((await send('GET', '/v1/instances?lable=x')).json.error).toMatchObject({
      code: 'InvalidRequest',
      field: 'lable',
    });
    expect((await send('GET', '/v1/instances?limit=0')).json.error).toMatchObject({ field: 'limit' });
    expect((await send('GET', '/v1/instances?continue=zzz')).json.error).toMatchObject({ field: 'continue' });
    expect((await send('GET', '/v1/instances?selector=a%3D%3D%3Db')).json.error).toMatchObject({ field: 'selector' });
    expect((await send('GET', '/v1/instances?watch=true&revision=999999')).json.error).toMatchObject({
      field: 'revision',
    });
  });

  it.each(['limit=5', 'continue=aW5zdGFuY2VzL2RlZmF1bHQvYQ', 'offset=0', 'order=newest'])(
    'refuses a watch with %s: it has no pages',
    async (parameter) => {
      const [field = ''] = parameter.split('=');
      const { status, json } = await send('GET', `/v1/instances?watch=true&${parameter}`);
      expect(status).toBe(400);
      expect(json.error).toMatchObject({ code: 'InvalidRequest', field });
      expect(json.error.message).toContain(`query parameter "${field}" selects a page`);
    },
  );

  it('knows the difference between nothing there and not possible', async () => {
    expect((await send('GET', '/v1/nothing')).status).toBe(404);
    expect((await send('GET', '/v1/instances/none')).json.error.code).toBe('NotFound');
    expect((await send('GET', '/v1/instances/none?project=ci')).json.error.message).toBe(
      'there is no instance "none" in project "ci"',
    );
    expect((await send('DELETE', '/v1/events/x')).json.error.code).toBe('MethodNotAllowed');
  });
});

describe('who may do what', () => {
  it('wants a token', async () => {
    const response = await systemFetch(`${server.url}/v1/instances`);
    expect(response.status).toBe(401);
  });

  it('keeps an agent to its own host', async () => {
    const as = (path: string) => send('GET', path, undefined, { authorization: 'Bearer host:h9' });
    expect((await as('/v1/instances')).status).toBe(403);
    expect((await as('/v1/hosts/h1/images')).status).toBe(403);
    expect((await as('/v1/hosts/h9/images')).status).toBe(200);
  });
});

describe('resources', () => {
  it('creates, gets by name and by id, replaces and deletes', async () => {
    const made = await server.client.create('instance', {
      metadata: { name: 'web-1', labels: { tier: 'web' } },
      spec: { image: 'smallest' },
    });
    expect(made.metadata).toMatchObject({ name: 'web-1', project: 'default', generation: 1 });
    expect(made.metadata.revision).toBeGreaterThan(0);
    expect(await server.client.get('instance', made.metadata.id)).toMatchObject({ metadata: { name: 'web-1' } });

    const changed = await server.client.replace('instance', 'web-1', {
      metadata: { labels: { tier: 'db' } },
      spec: { ...made.spec, restartPolicy: 'OnFailure' },
    });
    expect(changed.metadata).toMatchObject({ generation: 2, labels: { tier: 'db' } });
    await expect(server.client.replace('instance', 'web-1', { spec: { ...made.spec, cpus: 3 } })).rejects.toMatchObject(
      { field: 'spec.cpus' },
    );

    const gone = await server.client.delete('instance', 'web-1');
    expect(gone.status.phase).toBe('Deleting');
  });

  it('may be sent back as read, and refuses when it has changed since', async () => {
    const pool = await server.client.create('pool', { metadata: { name: 'fast' }, spec: {} });
    const back = await send('PUT', '/v1/pools/fast', { ...pool, spec: { ...pool.spec, description: 'quick' } });
    expect(back.json).toMatchObject({ spec: { description: 'quick' }, metadata: { generation: 2 } });
    const late = await send('PUT', '/v1/pools/fast', { ...pool, spec: { ...pool.spec, description: 'slow' } });
    expect(late).toMatchObject({ status: 412, json: { error: { code: 'RevisionMismatch' } } });
    expect(
      (await send('PUT', '/v1/pools/fast', { ...back.json, metadata: { ...back.json.metadata, id: 'other' } })).json
        .error.field,
    ).toBe('metadata.id');
  });

  it('are replaced in their own project', async () => {
    const metadata = { name: 'far', project: 'ci' };
    const made = await server.client.create('instance', { metadata, spec: { image: 'tiny' } });
    const changed = await server.client.replace('instance', 'far', {
      metadata: { project: made.metadata.project, labels: { a: 'b' } },
      spec: { ...made.spec, powerState: 'stopped' },
    });
    expect(changed).toMatchObject({ metadata: { project: 'ci', labels: { a: 'b' } }, spec: { powerState: 'stopped' } });
    await server.client.delete('instance', 'far', { project: 'ci' });
  });

  it('takes a name once', async () => {
    await server.client.create('size', { metadata: { name: 'small' }, spec: { cpus: 1, memoryMiB: 512 } });
    await expect(
      server.client.create('size', { metadata: { name: 'small' }, spec: { cpus: 2, memoryMiB: 512 } }),
    ).rejects.toMatchObject({ code: 'AlreadyExists' });
  });

  it('makes one instance of fifty creates with one idempotency key', async () => {
    const create = () => server.client.create('instance', { spec: { image: 'tiny' } }, { idempotencyKey: 'once' });
    const ids = new Set((await Promise.all(Array.from({ length: 50 }, create))).map((made) => made.metadata.id));
    expect(ids.size).toBe(1);
    await expect(
      server.client.create('instance', { spec: { image: 'tiny', cpus: 2 } }, { idempotencyKey: 'once' }),
    ).rejects.toMatchObject({
      code: 'IdempotencyMismatch',
    });
  });

  it('pages through a list by selector, without gap or repetition', async () => {
    for (let i = 0; i < 7; i++)
      await server.client.create('pool', { metadata: { name: `page-${i}`, labels: { page: 'yes' } }, spec: {} });
    const names: string[] = [];
    let next: string | undefined;
    do {
      const page = await server.client.list('pool', {
        selector: 'page=yes',
        limit: 3,
        ...(next === undefined ? {} : { continue: next }),
      });
      names.push(...page.items.map((item) => item.metadata.name));
      next = page.continue;
    } while (next !== undefined);
    expect(names).toEqual(Array.from({ length: 7 }, (_, i) => `page-${i}`));
  });

  it('watches from a revision, in order, and tells what stopped to match as deleted', async () => {
    const { revision } = await server.client.list('pool');
    const made = await server.client.create('pool', { metadata: { name: 'seen', labels: { w: '1' } }, spec: {} });
    await server.client.replace('pool', 'seen', { metadata: { labels: { w: '2' } }, spec: made.spec });
    await server.client.delete('pool', 'seen');
    const seen: string[] = [];
    const stop = new AbortController();
    for await (const change of server.client.watch('pool', { revision, selector: 'w=1' }, stop.signal)) {
      if (change.type === 'bookmark') {
        // The three changes take three revisions; only their bookmark says that all has been told.
        if (change.revision === revision + 3) break;
        continue;
      }
      seen.push(`${change.type} ${change.resource.metadata.name}`);
    }
    stop.abort();
    expect(seen).toEqual(['put seen', 'delete seen', 'delete seen']);
  });
});

describe('what a create answers', () => {
  it('is what a read shows at that revision, and a name counts for the idempotency key too', async () => {
    const spec = { image: 'tiny' };
    const made = await server.client.create(
      'instance',
      { metadata: { name: 'one' }, spec },
      { idempotencyKey: 'named' },
    );
    const read = await server.client.get('instance', 'one');
    if (read.metadata.revision === made.metadata.revision) expect(read).toEqual(made);
    await expect(
      server.client.create('instance', { metadata: { name: 'two' }, spec }, { idempotencyKey: 'named' }),
    ).rejects.toMatchObject({ code: 'IdempotencyMismatch' });
    await server.client.delete('instance', 'one');
    await expect.poll(() => server.client.get('instance', 'one').catch((error) => error.code)).toBe('NotFound');
    await server.client.create('instance', { metadata: { name: 'one' }, spec });
    await expect(
      server.client.create('instance', { metadata: { name: 'one' }, spec }, { idempotencyKey: 'named' }),
    ).rejects.toMatchObject({ code: 'Conflict' });
    await server.client.delete('instance', 'one');
  });
});

describe('an instance and a host', () => {
  it('says why it waits, host by host, is placed when a host comes, and keeps its place by reports', async () => {
    const { client } = server;
    await client.create('instance', { metadata: { name: 'big' }, spec: { image: 'tiny', cpus: 64 } });
    const agent = server.agentClient('h1');
    const session = await agent.register(testRegistration());
    expect(session.epoch).toBe(1);

    const explanation = await client.explain('big');
    // One CPU went to the instance of the idempotency test, which has waited for a host.
    expect(explanation.summary).toBe('0 of 1 host: 1 InsufficientCpu');
    expect(explanation.hosts[0]?.refusals).toEqual([
      { rule: 'fit', reason: 'InsufficientCpu', message: '64 CPUs asked, 3 free: needs 61 more' },
    ]);

    const stop = new AbortController();
    const assignments = agent.assignments(session.epoch, stop.signal)[Symbol.asyncIterator]();
    expect((await assignments.next()).value).toMatchObject({ type: 'sync' });
    const placed = await client.create('instance', { metadata: { name: 'fits' }, spec: { image: 'tiny', cpus: 2 } });
    let assignment;
    do {
      const { value } = await assignments.next();
      if (value?.type === 'put' && value.assignment.instanceId === placed.metadata.id) assignment = value.assignment;
    } while (!assignment);
    expect(assignment).toMatchObject({ want: 'running', cpus: 2, incarnation: 1, driver: 'fake', imageName: 'tiny' });

    const report = { instanceId: placed.metadata.id, incarnation: 1, sequence: 1, observedGeneration: 1 };
    const guest = { state: 'running' as const, ready: true, ports: [], phases: [], address: '10.0.2.15' };
    expect(await agent.report({ epoch: 1, reports: [{ ...report, guest }] })).toEqual({ results: ['accepted'] });
    expect(await agent.report({ epoch: 1, reports: [{ ...report, guest: { ...guest, state: 'failed' } }] })).toEqual({
      results: ['stale'],
    });
    expect(await client.get('instance', 'fits')).toMatchObject({
      status: { phase: 'Running', host: 'h1', guest: { address: '10.0.2.15' } },
    });

    await client.delete('instance', 'fits');
    expect(await agent.report({ epoch: 1, reports: [{ ...report, sequence: 2, guest: { state: 'absent' } }] })).toEqual(
      { results: ['accepted'] },
    );
    await expect.poll(() => client.get('instance', 'fits').catch((error) => error.code)).toBe('NotFound');
    stop.abort();
  });

  it('refuses another machine and another data directory under a known name, and ends a session with the next one', async () => {
    const agent = server.agentClient('h2');
    await agent.register(testRegistration({ machineId: 'm2' }));
    await expect(agent.register(testRegistration({ machineId: 'other', session: 'session-2' }))).rejects.toMatchObject({
      code: 'Conflict',
    });
    const elsewhere = { machineId: 'm2', agentId: `agent_${'z'.repeat(26)}`, session: 'session-2' };
    await expect(agent.register(testRegistration(elsewhere))).rejects.toMatchObject({
      code: 'Conflict',
      field: 'agentId',
      message: expect.stringMatching(/agent_0{26}.*agent_z{26}/),
    });
    await expect(agent.register(testRegistration({ machineId: 'm2', agentId: '' }))).rejects.toMatchObject({
      code: 'InvalidRequest',
      field: 'agentId',
    });
    const again = await agent.register(testRegistration({ machineId: 'm2', session: 'session-2' }));
    expect(again.epoch).toBe(2);
    expect((await agent.register(testRegistration({ machineId: 'm2', session: 'session-2' }))).epoch).toBe(2);
    await expect(agent.heartbeat({ epoch: 1 })).rejects.toMatchObject({ code: 'StaleEpoch' });
    await agent.heartbeat({ epoch: 2 });
  });
});

describe('the line that an agent dials', () => {
  async function dial(token: string, epoch: number): Promise<string> {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `GET /v1/hosts/h3/link?epoch=${epoch} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: Upgrade\r\nUpgrade: berth-agent/1\r\n\r\n`,
    );
    const [head] = await once(socket, 'data');
    socket.destroy();
    return String(head).split('\r\n', 1)[0] ?? '';
  }

  it('is open to the agent of that host in its present session, and to no other', async () => {
    const session = await server.agentClient('h3').register(testRegistration({ machineId: 'm3' }));
    expect(await dial('host:h3', session.epoch)).toContain('101');
    expect(await dial('host:h3', session.epoch + 1)).toContain('409');
    expect(await dial('host:h1', session.epoch)).toContain('403');
    expect(await dial('nobody', session.epoch)).toContain('401');
  });
});
