import { afterEach, describe, expect, it } from 'vitest';
import { type Client, createClient } from '../../../api/client/client.ts';
import type { Role } from '../../../api/resources/role.ts';
import type { Token } from '../../../api/resources/token.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { systemFetch } from '../../../base/system.ts';
import { type Store, StoreError } from '../../../store/store.ts';
import { startTestServer, testStore } from '../../testing.ts';

type TestServer = Awaited<ReturnType<typeof startTestServer>>;

const open: TestServer[] = [];

async function serve(options: Parameters<typeof startTestServer>[0] = {}): Promise<TestServer> {
  const server = await startTestServer(options);
  open.push(server);
  return server;
}

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

interface Issued {
  readonly token: string;
  readonly resource: Token;
}

function as({ url }: { readonly url: string }, token: string): Client {
  return createClient({ fetch: (target, init) => systemFetch(target, init), url, token });
}

async function call<T>(client: Client, method: string, path: string, body?: unknown): Promise<T> {
  const answer = await client.request(path, { method, ...(body === undefined ? {} : { body }) });
  return JSON.parse(await answer.text()) as T; // the routes' own schema
}

function issue(client: Client, name: string, spec: object = {}): Promise<Issued> {
  return call(client, 'POST', '/v1/tokens', { metadata: { name }, spec });
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'done',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : 'unknown'),
  );
}

/** A watch that has begun, and how it ends. */
async function follow(client: Client): Promise<{ readonly ended: Promise<string> }> {
  const { revision } = await client.list('instance');
  const changes = client.watch('instance', { revision })[Symbol.asyncIterator]();
  await changes.next();
  const toTheEnd = async (): Promise<void> => {
    while (!(await changes.next()).done);
  };
  return { ended: codeOf(toTheEnd()) };
}

async function withInstance(server: TestServer, name: string, project = 'default'): Promise<void> {
  if ((await codeOf(server.client.get('image', 'tiny'))) === 'NotFound')
    await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  await server.client.create('instance', { metadata: { name, project }, spec: { image: 'tiny', cpus: 1 } });
}

describe('a token', () => {
  it('is shown once, and opens what its role permits in its project', async () => {
    const server = await serve();
    const { token, resource } = await issue(server.client, 'ci', { role: 'user', project: 'web', expiresInSec: 3600 });
    expect(token).toMatch(/^berth_s_/);
    expect(resource).toMatchObject({ kind: 'token', metadata: { name: 'ci' }, spec: { role: 'user', project: 'web' } });
    const ci = as(server, token);
    await withInstance(server, 'theirs');
    await ci.create('instance', { metadata: { name: 'a', project: 'web' }, spec: { image: 'tiny', cpus: 1 } });
    expect((await ci.list('instance')).items.map(({ metadata }) => metadata.name)).toEqual(['a']);
    expect(await codeOf(ci.get('instance', 'theirs'))).toBe('NotFound');
    expect(await codeOf(ci.list('instance', { project: 'default' }))).toBe('Forbidden');
    const answers = JSON.stringify([await server.client.list('token'), await server.client.get('token', 'ci')]);
    expect(answers).not.toContain(token.split('_')[3]);
  });

  it('says who bears it and what it may do', async () => {
    const server = await serve();
    const { token } = await issue(server.client, 'ci', { role: 'user', project: 'web' });
    const ci = as(server, token);
    await server.client.create('binding', {
      metadata: { name: 'readers' },
      spec: { role: 'viewer', project: 'db', subjects: [{ kind: 'token', name: 'ci' }] },
    });
    expect(await call(ci, 'GET', '/v1/whoami')).toMatchObject({
      kind: 'token',
      name: 'ci',
      roles: [
        { role: 'user', project: 'web' },
        { role: 'viewer', project: 'db', binding: 'readers' },
      ],
    });
    const can = (question: object) => call<{ allowed: boolean; reason?: string }>(ci, 'POST', '/v1/can-i', question);
    expect(await can({ verb: 'create', resource: 'instance', project: 'web' })).toEqual({ allowed: true });
    expect(await can({ verb: 'create', resource: 'instance', project: 'db' })).toEqual({
      allowed: false,
      reason: 'token "ci" does not permit "create" on instance in project "db"',
    });
    await withInstance(server, 'theirs');
    expect(await can({ verb: 'read', resource: 'instance', project: 'default', name: 'theirs' })).toEqual({
      allowed: false,
      reason: 'there is no instance "theirs"',
    });
    expect(await call(server.client, 'GET', '/v1/whoami')).toEqual({ kind: 'admin', roles: [{ role: 'admin' }] });
  });

  it('that is revoked opens nothing, and what it has open ends', async () => {
    const server = await serve();
    const { token } = await issue(server.client, 'ci', { role: 'viewer' });
    const ci = as(server, token);
    const { ended } = await follow(ci);
    await server.client.delete('token', 'ci');
    expect(await ended).toBe('Unauthenticated');
    expect(await codeOf(ci.list('instance'))).toBe('Unauthenticated');
    const again = await issue(server.client, 'ci', { role: 'viewer' });
    expect(await codeOf(ci.list('instance'))).toBe('Unauthenticated');
    expect(await codeOf(as(server, again.token).list('instance'))).toBe('done');
  });

  it('ends a watch whose binding went, with the news', async () => {
    const server = await serve();
    const { token } = await issue(server.client, 'ci');
    const subjects = [{ kind: 'token', name: 'ci' }] as const;
    await server.client.create('binding', {
      metadata: { name: 'b' },
      spec: { role: 'viewer', project: 'web', subjects: [...subjects] },
    });
    const { ended } = await follow(as(server, token));
    await server.client.delete('binding', 'b');
    expect(await ended).toBe('Forbidden');
    expect(await codeOf(as(server, token).list('instance'))).toBe('Forbidden');
  });

  it('is extended by others, never by itself, and does not give more than it has', async () => {
    const server = await serve();
    const { token } = await issue(server.client, 'lead', { role: 'project-admin', project: 'web' });
    const lead = as(server, token);
    const made = await issue(lead, 'helper', { role: 'user', project: 'web' });
    expect(made.resource.spec.owner?.name).toBe('lead');
    await call(lead, 'POST', '/v1/tokens/helper/extend', { expiresInSec: 60 });
    expect(await codeOf(call(lead, 'POST', '/v1/tokens/lead/extend', { expiresInSec: 60 }))).toBe('Forbidden');
    expect(await codeOf(issue(lead, 'root', { role: 'admin', project: 'web' }))).toBe('Forbidden');
    expect(await codeOf(issue(lead, 'other', { role: 'user', project: 'db' }))).toBe('Forbidden');
    expect(await codeOf(issue(lead, 'all', { role: 'user' }))).toBe('Forbidden');
    expect(await codeOf(issue(as(server, made.token), 'third', { role: 'user', project: 'web' }))).toBe('Forbidden');
    const itself = { role: 'admin', subjects: [{ kind: 'token' as const, name: 'lead' }] };
    expect(await codeOf(lead.create('binding', { metadata: { name: 'up' }, spec: itself }))).toBe('Forbidden');
    expect(
      await codeOf(lead.create('binding', { metadata: { name: 'up' }, spec: { ...itself, project: 'web' } })),
    ).toBe('Forbidden');
    await server.client.delete('token', 'lead');
    expect(await codeOf(as(server, made.token).list('instance'))).toBe('Unauthenticated');
  });

  it('with a role that is edited has what the role says now; an editor cannot give a role more than they have', async () => {
    const server = await serve();
    const { client } = server;
    const rules: Role['spec']['rules'] = { role: ['read', 'update'], image: ['read'] };
    await client.create('role', { metadata: { name: 'editor' }, spec: { description: '', rules } });
    const editor = as(server, (await issue(client, 'editor', { role: 'editor' })).token);
    const edit = (more: Role['spec']['rules']) =>
      editor.replace('role', 'editor', { spec: { description: '', rules: { ...rules, ...more } } });
    expect(await codeOf(edit({ host: ['read'] }))).toBe('Forbidden');
    expect(await codeOf(edit({ image: ['read', 'delete'] }))).toBe('Forbidden');
    expect(await codeOf(editor.list('host'))).toBe('Forbidden');
    await client.replace('role', 'editor', { spec: { description: '', rules: { ...rules, host: ['read'] } } });
    expect(await codeOf(editor.list('host'))).toBe('done');
    expect(await codeOf(client.delete('role', 'editor'))).toBe('Conflict');
  });

  it('is told why it does not count, and is in no error', async () => {
    const server = await serve();
    const { token } = await issue(server.client, 'ci', { role: 'viewer' });
    const ask = async (path: string, headers: Record<string, string>) => {
      const answer = await systemFetch(`${server.url}${path}`, { headers });
      return { status: answer.status, text: await answer.text() };
    };
    const answers = [
      await ask(`/v1/instances?token=${token}`, {}),
      await ask('/v1/instances', { authorization: `Basic ${btoa(`x:${token}`)}` }),
      await ask('/v1/instances', { authorization: `Bearer ${token.slice(0, -3)}` }),
      await ask('/v1/instances', { authorization: `Bearer ${token}`, 'x-forwarded-user': 'admin' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 200]);
    expect(JSON.stringify(answers)).not.toContain(token.split('_')[3]);
    expect(answers[0]?.text).toContain('in the query is not read');
    expect(answers[2]?.text).toContain('not complete');
  });
});

describe('a share', () => {
  it('opens its ways into one instance, is extended and revoked, and shows nothing else', async () => {
    const server = await serve();
    await withInstance(server, 'a');
    await withInstance(server, 'b');
    const { token, resource } = await call<Issued>(server.client, 'POST', '/v1/instances/a/shares', {
      verbs: ['console', 'logs'],
      expiresInSec: 60,
    });
    expect(resource.metadata.name).toBe('share-a');
    const guest = as(server, token);
    expect((await guest.list('instance')).items.map(({ metadata }) => metadata.name)).toEqual(['a']);
    expect(await codeOf(guest.get('instance', 'b'))).toBe('NotFound');
    expect(await codeOf(guest.delete('instance', 'a'))).toBe('Forbidden');
    const ticket = (way: string) => codeOf(call(guest, 'POST', '/v1/instances/a/tickets', { way }));
    expect(await ticket('console')).toBe('done');
    expect(await ticket('exec')).toBe('Forbidden');
    expect(await codeOf(call(guest, 'POST', '/v1/instances/a/shares', {}))).toBe('Forbidden');
    expect(await codeOf(call(guest, 'POST', '/v1/tokens/share-a/extend', {}))).toBe('Forbidden');
    await call(server.client, 'POST', '/v1/tokens/share-a/extend', { expiresInSec: 120 });
    await server.client.delete('token', 'share-a');
    expect(await codeOf(guest.get('instance', 'a'))).toBe('Unauthenticated');
  });
});

describe('several servers of one store', () => {
  it('refuse what another has revoked at once, also what is open', async () => {
    const store = testStore();
    const [first, second] = [await serve({ store }), await serve({ store })];
    const { token } = await issue(first.client, 'ci', { role: 'viewer' });
    const elsewhere = as(second, token);
    expect(await codeOf(elsewhere.list('instance'))).toBe('done');
    const { ended } = await follow(elsewhere);
    await first.client.delete('token', 'ci');
    expect(await ended).toBe('Unauthenticated');
    expect(await codeOf(elsewhere.list('instance'))).toBe('Unauthenticated');
  });

  it('refuse everybody once the store is cut off for a second', async () => {
    const shared = testStore();
    let cut = false;
    const fail = (): void => {
      if (cut) throw new StoreError('Unavailable', 'cut off');
    };
    const store: Store = {
      async commit(...args) {
        fail();
        return shared.commit(...args);
      },
      get: (key) => shared.get(key),
      list: (...args) => shared.list(...args),
      watch: (...args) => shared.watch(...args),
      compact: (before) => shared.compact(before),
      close: () => shared.close(),
    };
    const clock = createManualClock();
    const server = await serve({ store, clock });
    const { token } = await issue(server.client, 'ci', { role: 'viewer' });
    const ci = as(server, token);
    clock.advance(1_500);
    expect(await codeOf(ci.list('instance'))).toBe('done'); // it has asked
    cut = true;
    expect(await codeOf(ci.list('instance'))).toBe('done'); // within the second
    clock.advance(1_500);
    expect(await codeOf(ci.list('instance'))).toBe('Unavailable');
    expect(await codeOf(ci.request('/healthz', {}))).toBe('done'); // open to everybody
    cut = false;
    expect(await codeOf(ci.list('instance'))).toBe('done');
  });
});
