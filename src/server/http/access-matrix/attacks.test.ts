import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, createClient } from '../../../api/client/client.ts';
import { systemFetch } from '../../../base/system.ts';
import { testBinding, testToken } from '../../../core/access/testing.ts';
import { keyOf } from '../../../core/state/keys.ts';
import type { AnyRecord } from '../../../core/state/records.ts';
import { startTestServer, testRegistration } from '../../testing.ts';

type TestServer = Awaited<ReturnType<typeof startTestServer>>;

/** Columns of who attacks: each holds its role in project web, but for the last. */
const tokens = {
  mallory: testToken('mallory', { role: 'user', project: 'web' }),
  boss: testToken('boss', { role: 'project-admin', project: 'web' }),
  eve: testToken('eve', { role: 'viewer', project: 'web' }),
  operator: testToken('operator', { role: 'fleet-operator' }),
  bare: testToken('bare'),
} as const;
type Who = keyof typeof tokens;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await put(...Object.values(tokens), testBinding('odd', { role: 'viewer', project: '__proto__', subjects: subject }));
  const { client } = server;
  await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'https://images.test/tiny' } });
  for (const host of ['rack-alpha', 'rack-beta'])
    await server
      .agentClient(host)
      .register(testRegistration({ machineId: host, capacity: { VCPU: 4, MEMORY_MB: 8192, DISK_GB: 100 } }));
  const secret = { userData: '#cloud-config\npassword: hunter2\n' };
  for (const [project, name, spec] of [
    ['api', 'payroll', { cpus: 4, ...secret }],
    ['api', 'billing', { cpus: 4 }],
    ['web', 'shop', { cpus: 1, ...secret }],
  ] as const)
    await client.create('instance', {
      metadata: { name, project, labels: { app: name === 'payroll' ? 'hr' : name } },
      spec: { image: 'tiny', memoryMiB: 512, ...spec },
    });
  await client.create('group', { metadata: { name: 'apart', project: 'api' }, spec: {} });
});
afterAll(() => server.close());

const subject = [{ kind: 'token' as const, name: 'bare' }];

/** Writes records as they are. */
async function put(...records: AnyRecord[]): Promise<void> {
  const changes = records.map((value) => ({ key: keyOf(value), ifRevision: 0, value }));
  const outcome = await server.plane.decider.committer.submit({ changes });
  expect(outcome.ok).toBe(true);
}

const fetchAs = (
  who: Who,
  path: string,
  init: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Response> =>
  systemFetch(`${server.url}${path}`, {
    ...init,
    headers: { authorization: `Bearer token:${who}`, 'content-type': 'application/json', ...init.headers },
  });

interface Told {
  readonly status: number;
  readonly text: string;
}

async function ask(who: Who, method: string, path: string, body?: unknown): Promise<Told> {
  const answer = await fetchAs(who, path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return { status: answer.status, text: await answer.text() };
}

const as = (who: Who): Client =>
  createClient({ fetch: (url, init) => systemFetch(url, init), url: server.url, token: `token:${who}` });

const newInstance = (spec: object, metadata: object = {}): object => ({
  metadata: { project: 'web', ...metadata },
  spec: { image: 'tiny', cpus: 1, memoryMiB: 64, powerState: 'stopped', ...spec },
});

describe('a changed resource', () => {
  it('keeps its status, whatever a client sends as status', async () => {
    const before = await as('mallory').get('instance', 'shop', { project: 'web' });
    const status = { phase: 'Running', host: 'rack-beta', incarnation: 9 };
    const { status: code } = await ask('mallory', 'PUT', '/v1/instances/shop?project=web', { ...before, status });
    expect(code).toBe(200);
    expect((await server.client.get('instance', 'shop', { project: 'web' })).status).toEqual(before.status);
  });

  it('stays in its project, under its name and id', async () => {
    const before = await as('mallory').get('instance', 'shop', { project: 'web' });
    for (const change of [{ project: 'api' }, { id: 'inst_x' }, { name: 'payroll' }, { createdAtMs: 1 }]) {
      const metadata = { ...before.metadata, ...change };
      const { status, text } = await ask('mallory', 'PUT', '/v1/instances/shop?project=web', { ...before, metadata });
      expect([status, text]).toEqual([400, expect.stringContaining('cannot be changed')]);
    }
  });

  it('keeps user-data that its writer may not read', async () => {
    const before = await as('mallory').get('instance', 'shop', { project: 'web' });
    expect(before.spec.userData).toBe('(hidden)');
    const metadata = { labels: { app: 'shop', tier: 'front' } };
    const answer = await ask('mallory', 'PUT', '/v1/instances/shop?project=web', { ...before, metadata });
    expect(answer).toMatchObject({ status: 200, text: expect.stringContaining('"userData":"(hidden)"') });
    expect(answer.text).not.toContain('hunter2');
    const { spec } = await server.client.get('instance', 'shop', { project: 'web' });
    expect(spec.userData).toContain('hunter2');
  });
});

describe('what belongs to others', () => {
  it.each<[string, object, number]>([
    ['a priority', { priority: 1 }, 403],
    ['the right to preempt', { preemption: 'LowerPriority' }, 403],
    ['a group of another project', { placement: { group: 'apart' } }, 400],
    ['a volume of another project', { volumes: [{ name: 'data' }] }, 400],
    ['a path as the name of a volume', { volumes: [{ name: '../api/data' }] }, 400],
    ['a pool that is not there', { placement: { pool: 'gold' } }, 400],
    ['an image that is not there', { image: 'other' }, 400],
    ['a URL as an image', { image: 'http://169.254.169.254/' }, 400],
    ['a file as an image', { image: 'file:///etc/shadow' }, 400],
  ])('is not had by naming %s', async (_name, spec, expected) => {
    const { status, text } = await ask('mallory', 'POST', '/v1/instances', newInstance(spec));
    expect([status, text]).toEqual([expected, expect.any(String)]);
    expect(text).not.toMatch(/rack-|payroll|billing/);
  });

  it('is not had by a later change', async () => {
    await as('mallory').create('instance', newInstance({}, { name: 'later' }) as never); // of the form of a create
    const { spec } = await as('mallory').get('instance', 'later', { project: 'web' });
    const change = (fields: object): Promise<Told> =>
      ask('mallory', 'PUT', '/v1/instances/later?project=web', { spec: { ...spec, ...fields } });
    expect((await change({ priority: 5 })).status).toBe(403);
    expect((await change({ volumes: [{ name: 'data' }] })).status).toBe(400);
    expect((await change({ priority: -1 })).status).toBe(200);
  });

  it('is no image for users: neither new, nor changed, nor of a disk', async () => {
    const spec = { source: 'http://169.254.169.254/latest/' };
    for (const who of ['mallory', 'boss'] as const) {
      expect((await ask(who, 'POST', '/v1/images', { metadata: { name: 'own' }, spec })).status).toBe(403);
      expect((await ask(who, 'PUT', '/v1/images/tiny', { spec })).status).toBe(403);
      expect((await ask(who, 'POST', '/v1/images/own/from-instance?instance=payroll&project=api')).status).not.toBe(
        200,
      );
    }
  });

  it('is no disk for a fleet operator, who has no right to user-data', async () => {
    for (const [name, project] of [
      ['payroll', 'api'],
      ['shop', 'web'],
    ])
      expect(
        (await ask('operator', 'POST', `/v1/images/own/from-instance?instance=${name}&project=${project}`)).status,
      ).not.toBe(200);
  });

  it('is refused item by item in a batch, and takes nothing else with it', async () => {
    const items = [
      newInstance({}, { name: 'mine-1' }),
      newInstance({}, { name: 'theirs-1', project: 'api' }),
      newInstance({ priority: 9 }, { name: 'mine-2' }),
      newInstance({}, { name: 'mine-3' }),
    ];
    const { status, text } = await ask('mallory', 'POST', '/v1/instances/batch', { items });
    const { items: told } = JSON.parse(text) as { items: { error?: { code: string; field?: string } }[] };
    expect(status).toBe(200);
    expect(told.map(({ error }) => error?.code)).toEqual([undefined, 'Forbidden', 'Forbidden', undefined]);
    expect(told[2]?.error?.field).toBe('items[2].spec.priority');
    const { items: there } = await server.client.list('instance');
    const names = there.map(({ metadata }) => metadata.name);
    expect(names).toEqual(expect.arrayContaining(['mine-1', 'mine-3']));
    expect(names).not.toContain('theirs-1');
  });
});

describe('answers about placement', () => {
  const names = /rack-(alpha|beta)|payroll|billing|"api"|api\//;
  const big = { cpus: 4, powerState: 'running', placement: { antiAffinity: [{ to: { app: 'hr' } }] } };

  it('name no hosts and nothing of others, wherever the reasons are', async () => {
    await as('mallory').create('instance', newInstance(big, { name: 'waits' }) as never); // of the form of a create
    const { items } = await server.client.list('instance', { project: 'web' });
    const host = items.find(({ metadata }) => metadata.name === 'shop')?.status.host ?? 'none';
    for (const [method, path, body] of [
      ['GET', '/v1/instances/waits?project=web'],
      ['GET', '/v1/instances/waits/explain?project=web'],
      ['GET', '/v1/queue'],
      ['GET', '/v1/queue?project=web'],
      ['GET', '/v1/events?project=web&subject=waits'],
      ['GET', '/v1/capacity?project=web&cpus=4&memoryMiB=64&losses=1'],
      ['POST', '/v1/capacity', { project: 'web', spec: { cpus: 4, memoryMiB: 64 }, losses: 2 }],
      ['POST', '/v1/instances?dryRun=true', newInstance(big)],
      ['POST', '/v1/instances?dryRun=true', newInstance({ ...big, cpus: 1 })],
      ['GET', '/v1/projects/web/usage'],
    ] as const) {
      const { status, text } = await ask('mallory', method, path, body);
      expect([path, status]).toEqual([path, 200]);
      expect([path, text.replaceAll(host, 'ours').match(names)?.[0]]).toEqual([path, undefined]);
    }
  });

  it('do not follow a label of another project: a rule is about instances of the own', async () => {
    const { status, text } = await ask(
      'boss',
      'POST',
      '/v1/instances?dryRun=true',
      newInstance({ powerState: 'running', placement: { affinity: [{ to: { app: 'hr' } }] } }),
    );
    expect(status).toBe(200);
    expect(text).toContain('AffinityNoMember');
    expect(text).not.toContain('payroll');
  });

  it('show a fleet operator hosts, and guests by their ids', async () => {
    for (const path of [
      '/v1/usage',
      '/v1/fleet-map',
      '/v1/hosts/rack-alpha/providers',
      '/v1/hosts/rack-beta/providers',
      '/v1/queue',
      '/v1/instances',
      '/v1/capacity?cpus=4&memoryMiB=64&losses=2',
      '/v1/events',
      '/v1/candidates?cpus=1&memoryMiB=64',
    ]) {
      const { status, text } = await ask('operator', 'GET', path);
      expect([path, status]).toEqual([path, 200]);
      expect([path, text.match(/payroll|billing|shop|waits|hunter2/)?.[0]]).toEqual([path, undefined]);
    }
  });

  it('select nothing by labels that the reader does not see', async () => {
    const { text } = await ask('operator', 'GET', '/v1/instances?selector=app%3Dhr');
    expect(JSON.parse(text)).toMatchObject({ items: [] });
  });
});

describe('pages', () => {
  it('that begin where those of another ended show the own only', async () => {
    const { continue: token = '' } = JSON.parse(
      await (
        await systemFetch(`${server.url}/v1/instances?limit=1`, { headers: { authorization: 'Bearer operator' } })
      ).text(),
    ) as { continue?: string };
    expect(atob(token)).toMatch(/^instances\/api\//);
    const { text } = await ask('mallory', 'GET', `/v1/instances?continue=${token}`);
    const { items } = JSON.parse(text) as { items: { metadata: { project: string } }[] };
    expect(new Set(items.map(({ metadata }) => metadata.project))).toEqual(new Set(['web']));
  });

  it('do not say in their token what a fleet operator may not see', async () => {
    const { text } = await ask('operator', 'GET', '/v1/instances?limit=1');
    const { continue: token = '' } = JSON.parse(text) as { continue?: string };
    expect(atob(token)).toMatch(/^instances\/inst_/);
    const seen = new Set<string>();
    for (let next: string | undefined = ''; next !== undefined; ) {
      const page = await ask('operator', 'GET', `/v1/instances?limit=1${next === '' ? '' : `&continue=${next}`}`);
      const { items, continue: more } = JSON.parse(page.text) as {
        items: { metadata: { id: string } }[];
        continue?: string;
      };
      for (const { metadata } of items) seen.add(metadata.id);
      next = more;
    }
    expect(seen.size).toBe((await server.client.list('instance')).items.length);
  });
});

describe('a watch', () => {
  it('says nothing of others, not even that they end', async () => {
    const { client } = server;
    const { revision } = await client.list('instance');
    const create = (project: string): Promise<unknown> =>
      client.create('instance', newInstance({}, { project, name: 'brief' }) as never); // of the form of a create
    for (const project of ['api', 'web']) await create(project);
    for (const project of ['api', 'web']) await client.delete('instance', 'brief', { project });
    const gone = async (): Promise<void> => {
      while (server.plane.decider.cache.get('instance', 'instances/web/brief'))
        await new Promise<void>((resolve) => server.plane.decider.cache.onCommitted(() => resolve()));
    };
    await gone();
    const told: string[] = [];
    for await (const change of as('mallory').watch('instance', { revision })) {
      if (change.type === 'bookmark') continue;
      told.push(`${change.type} ${change.resource.metadata.project}/${change.resource.metadata.name}`);
      if (change.type === 'delete') break;
    }
    expect(told.at(-1)).toBe('delete web/brief');
    expect(told.filter((line) => !line.includes(' web/'))).toEqual([]);
  });
});

describe('names', () => {
  it.each([
    '/v1/instances/..%2f..%2fapi%2fpayroll?project=web',
    '/v1/instances/..%2fapi%2fpayroll?project=web',
    '/v1/instances/payroll?project=web%2f..%2fapi',
    '/v1/instances/payroll?project=../api',
    '/v1/instances/api%2fpayroll?project=',
    '/v1/instances/%2e%2e/payroll?project=api',
    '/v1/projects/web%2f..%2fapi/usage',
    '/v1/instances/payroll/explain?project=api',
    '/v1/instances/..%2fapi%2fpayroll/log?project=web',
  ])('lead nowhere: %s', async (path) => {
    const { status, text } = await ask('mallory', 'GET', path);
    expect([path, [400, 403, 404].includes(status)]).toEqual([path, true]);
    expect(text).not.toMatch(/"id"|hunter2/);
  });

  it.each(['a\u202eb', '__proto__', 'constructor', 'a/b', '..', '%2e%2e', 'A', 'ｗｅｂ', ''])(
    'of projects and resources have a form: %j',
    async (name) => {
      const projects = await ask('boss', 'POST', '/v1/instances', newInstance({}, { project: name }));
      expect([400, 403]).toContain(projects.status);
      const own = await ask('boss', 'POST', '/v1/groups', { metadata: { name, project: 'web' }, spec: {} });
      expect(own.status).toBe(name === 'constructor' ? 201 : 400); // a word like any other
    },
  );

  it.each(['ci\u202egpj', 'ci\u200b', 'ci\n', '\u2066ci'])('of subjects hide nothing: %j', async (name) => {
    const spec = { role: 'viewer', project: 'web', subjects: [{ kind: 'user', name, provider: 'corp' }] };
    const { status, text } = await ask('boss', 'POST', '/v1/bindings', { metadata: { name: 'b' }, spec });
    expect([status, text]).toEqual([400, expect.stringContaining('spec.subjects')]);
  });

  it('as JSON keys that JavaScript knows change no rights', async () => {
    const body = '{"metadata":{"name":"p","project":"web","__proto__":{"project":"api"}},"spec":{"image":"tiny"}}';
    const answer = await fetchAs('mallory', '/v1/instances', { method: 'POST', body });
    expect(answer.status).toBe(400);
    for (const path of ['/v1/instances?project=__proto__', '/v1/instances?project=constructor'])
      expect((await ask('mallory', 'GET', path)).status).not.toBe(200);
    // A binding that names such a project gives nothing in others.
    expect((await ask('bare', 'GET', '/v1/instances?project=web')).status).toBe(403);
  });
});

describe('requests', () => {
  it('that name a project twice, or once here and once there, are about the one that is asked about', async () => {
    const { status, text } = await ask('mallory', 'GET', '/v1/instances/payroll?project=web&project=api');
    expect([status, text]).toEqual([400, expect.stringContaining('given twice')]);
    const twice = await ask('mallory', 'POST', '/v1/instances?project=web', newInstance({}, { project: 'api' }));
    expect(twice.status).toBeGreaterThanOrEqual(400);
  });

  it('that ask for a way into a guest by plain GET, or by another method, get none', async () => {
    for (const way of ['exec', 'console', 'vnc', 'ports/80'])
      for (const method of ['GET', 'POST'])
        expect((await ask('mallory', method, `/v1/instances/shop/${way}?project=web`)).status).toBeGreaterThanOrEqual(
          400,
        );
  });

  it('of somebody who holds the verb nowhere are refused before their body is read', async () => {
    for (const [method, path] of [
      ['POST', '/v1/instances'],
      ['POST', '/v1/instances/batch'],
      ['PUT', '/v1/instances/shop?project=web'],
      ['POST', '/v1/images'],
      ['POST', '/v1/bindings'],
    ] as const) {
      const answer = await fetchAs('eve', path, { method, body: '{ no json' });
      expect([path, answer.status]).toEqual([path, 403]);
    }
  });

  it('get the same answer about what is of others and about what is not there', async () => {
    const told = async (who: Who, name: string, project: string) => {
      const paths: readonly [string, string, string?][] = [
        ['GET', `/v1/instances/${name}?project=${project}`],
        ['GET', `/v1/instances/${name}/explain?project=${project}`],
        ['GET', `/v1/instances/${name}/log?project=${project}`],
        ['PUT', `/v1/instances/${name}?project=${project}`, 'no object'],
        ['DELETE', `/v1/instances/${name}?project=${project}`],
        ['POST', `/v1/instances/${name}/tickets?project=${project}`, 'no object'],
        ['GET', `/v1/instances?project=${project}`],
        ['GET', `/v1/projects/${project}/usage`],
      ];
      const answers = await Promise.all(paths.map(([method, path, body]) => ask(who, method, path, body)));
      const text = JSON.stringify(answers).replaceAll(/\\"traceId\\":\\"[0-9a-f]{32}\\"/g, 'TRACE'); // of each request
      return text.replaceAll(name, 'NAME').replaceAll(project, 'PROJECT');
    };
    for (const who of ['mallory', 'boss', 'eve'] as const)
      expect(await told(who, 'payroll', 'api')).toBe(await told(who, 'nothing', 'nowhere'));
  });

  it('with the idempotency key of another learn nothing, and change nothing', async () => {
    const create = (who: Who, metadata: object, spec: object = {}): Promise<Told> =>
      fetchAs(who, '/v1/instances', {
        method: 'POST',
        body: JSON.stringify(newInstance(spec, metadata)),
        headers: { 'idempotency-key': 'shared-key' },
      }).then(async (answer) => ({ status: answer.status, text: await answer.text() }));
    await server.client.create(
      'instance',
      newInstance({ userData: 'hunter2' }, { name: 'keyed', project: 'api' }) as never,
      { idempotencyKey: 'shared-key' },
    );
    expect((await create('boss', { name: 'first' }, { userData: 'hunter2' })).status).toBe(201);
    const other = await create('mallory', { name: 'second' });
    expect([other.status, other.text]).toEqual([expect.any(Number), expect.not.stringContaining('hunter2')]);
    expect(other.status).toBeGreaterThanOrEqual(400);
    const same = await create('mallory', { name: 'first' }, { userData: 'hunter2' });
    expect(same.text).toContain('"userData":"(hidden)"');
    expect((await create('eve', { name: 'first' }, { userData: 'hunter2' })).status).toBe(403);
  });
});
