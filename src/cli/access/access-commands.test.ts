import { describe, expect, it } from 'vitest';
import { resourceDefinitions } from '../../api/resources/index.ts';
import { type Handler, page, runBerth, testNowMs } from '../testing.ts';

const text = 'berth_s_0123456789_secret_crc000';
const metadata = (name: string) => ({
  id: `tok_${name}`,
  name,
  project: '',
  revision: 3,
  generation: 1,
  labels: {},
  createdAtMs: testNowMs - 3_600_000,
});
const ci = {
  kind: 'token',
  schemaVersion: 1,
  metadata: metadata('ci'),
  spec: { description: '', role: 'user', project: 'web', expiresAtMs: testNowMs + 30 * 86_400_000 },
  status: { tokenId: '0123456789', lastUsedAtMs: testNowMs - 60_000 },
};
const share = {
  ...ci,
  metadata: metadata('share-web-1'),
  spec: {
    description: '',
    project: 'web',
    share: { instance: 'web-1', instanceId: 'inst_1', verbs: ['console', 'logs'] },
    expiresAtMs: testNowMs + 7_200_000,
  },
};
const role = {
  kind: 'role',
  schemaVersion: 1,
  metadata: { ...metadata('watcher'), id: 'role_1' },
  spec: { description: 'looks on', rules: { instance: ['read', 'logs'], event: ['read'] } },
  status: {},
};
const binding = {
  kind: 'binding',
  schemaVersion: 1,
  metadata: { ...metadata('web-ci'), id: 'bind_1' },
  spec: { role: 'user', project: 'web', subjects: [{ kind: 'token', name: 'ci' }] },
  status: {},
};

const handler: Handler = ({ method, path, body }) => {
  const at = `${method} ${path}`;
  switch (at) {
    case 'GET /v1/tokens':
      return page([share, ci]);
    case 'POST /v1/tokens':
      return { status: 201, json: { token: text, resource: ci } };
    case 'POST /v1/instances/web-1/shares':
      return { status: 201, json: { token: text, resource: share } };
    case 'GET /v1/roles':
      return page([role]);
    case 'GET /v1/bindings':
      return page([binding]);
    case 'GET /v1/whoami':
      return {
        json: {
          kind: 'token',
          name: 'ci',
          tokenId: '0123456789',
          expiresAtMs: testNowMs + 60_000,
          roles: [
            { role: 'user', project: 'web' },
            { role: 'viewer', binding: 'all-read' },
          ],
        },
      };
    case 'POST /v1/can-i':
      return JSON.stringify(body).includes('"delete"')
        ? { json: { allowed: false, reason: 'token "ci" does not permit "delete" on host' } }
        : { json: { allowed: true } };
    default:
      if (path.startsWith('/v1/tokens/')) return { json: path.includes('share') ? share : ci };
      if (path.startsWith('/v1/roles')) return { json: role };
      return path.startsWith('/v1/bindings') ? { json: binding } : undefined;
  }
};

const run = (line: string) => runBerth(line.split(' '), { handler });

describe('berth token', () => {
  it('is created, with its text alone on standard output', async () => {
    const { requests, stdout, stderr } = await run(
      'token create --name ci --role user --for-project web --expires 30d --label team=a',
    );
    expect(requests.at(-1)?.body).toEqual({
      metadata: { name: 'ci', labels: { team: 'a' } },
      spec: { description: '', role: 'user', project: 'web', expiresInSec: 30 * 86_400 },
    });
    expect(stdout).toBe(`${text}\n`);
    expect(stderr).toBe(
      'ci created: role user in project web; expires in 30d. Keep this text: it is not shown again\n',
    );
  });

  it('is created with the field `token` for programs', async () => {
    const { stdout, stderr } = await run('token create ci -o json');
    expect(JSON.parse(stdout)).toMatchObject({ token: text, resource: { metadata: { name: 'ci' } } });
    expect(stderr).toBe('');
  });

  it.each([
    ['token create --role user', 'the token has no name'],
    ['token create ci --name cd', 'the token has two names: "ci" and --name "cd"'],
    ['token create --name ci --expires soon', '--expires cannot be "soon"'],
    ['token create --name ci --expires 0s', '--expires must be at least a second'],
    ['share web-1 --expires never', 'a share has an end'],
    ['share web-1 --verbs read', '--verbs cannot be "read"'],
    ['role create x', 'a role without rules permits nothing'],
    ['role create x --rule instance=fly', '--rule cannot be "fly"'],
    ['role create x --rule castle=read', '--rule cannot be "castle"'],
    ['role set watcher', 'no change of role "watcher" is given'],
    ['binding create b --role user', 'a binding needs a subject that gets the role'],
    ['binding create b --role user --user ann', '--user cannot be "ann"'],
  ])('%s is refused: %s', async (line, message) => {
    const { exitCode, stderr, requests } = await run(line);
    expect(stderr).toContain(message);
    expect(exitCode).toBe(2);
    expect(requests).toEqual([]);
  });

  it('is listed with its end and its last use, and shown without its text', async () => {
    const { stdout } = await run('token ls');
    expect(stdout).toContain('ci           0123456789  user            web      in 30d   60s');
    expect((await run('token ls -o json')).stdout).not.toContain('secret');
    expect((await run('token show ci')).stdout).toContain('expires   in 30d\nlast use  60s ago');
    expect((await run('token ls --expired')).stderr).toContain('no tokens');
  });

  it('is extended and revoked', async () => {
    const extended = await run('token extend ci --expires never');
    expect(extended.requests.at(-1)).toMatchObject({ path: '/v1/tokens/ci/extend', body: { neverExpires: true } });
    expect(extended.stdout).toBe('ci expires in 30d\n');
    const revoked = await run('token revoke ci share-web-1');
    expect(revoked.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'DELETE /v1/tokens/ci',
      'DELETE /v1/tokens/share-web-1',
    ]);
    expect(revoked.stdout).toBe('ci revoked\nshare-web-1 revoked\n');
  });
});

describe('berth share', () => {
  it('makes a token for one instance of the project', async () => {
    const { requests, stdout, stderr } = await run('share web-1 --expires 2h --project web');
    expect(requests.at(-1)).toMatchObject({
      path: '/v1/instances/web-1/shares',
      query: { project: 'web' },
      body: { verbs: ['console', 'logs', 'forward'], expiresInSec: 7200 },
    });
    expect(stdout).toBe(`${text}\n`);
    expect(stderr).toContain('share-web-1 created: console, logs, forward of instance web-1; expires in 2h');
  });

  it('is listed apart from other tokens, extended and revoked', async () => {
    const listed = await run('share ls -o name');
    expect(listed.stdout).toBe('share-web-1\n');
    expect((await run('share ls')).stdout).toContain('web/web-1  console,logs  in 2h');
    expect((await run('share extend share-web-1')).requests.at(-1)?.body).toEqual({ expiresInSec: 7200 });
    expect((await run('share extend share-web-1 --expires 4h')).requests.at(-1)?.body).toEqual({
      expiresInSec: 14_400,
    });
    expect((await run('share revoke share-web-1')).stdout).toBe('share-web-1 revoked\n');
  });
});

describe('berth role', () => {
  it('lists built-in roles before custom ones, and shows what either permits', async () => {
    const { stdout } = await run('role ls -o name');
    expect(stdout.split('\n').slice(0, 7)).toEqual([
      'viewer',
      'user',
      'project-admin',
      'fleet-operator',
      'metrics',
      'admin',
      'watcher',
    ]);
    expect((await run('role show watcher')).stdout).toContain('instance  read, logs');
    const builtIn = await run('role show metrics');
    expect(builtIn.stdout).toContain('metrics   read');
    expect(builtIn.requests).toEqual([]);
  });

  it('is created from rules, and changed by resource', async () => {
    const created = await run('role create x --rule instance=read,console --rule instance=logs');
    expect(created.requests.at(-1)?.body).toEqual({
      metadata: { name: 'x' },
      spec: { description: '', rules: { instance: ['read', 'console', 'logs'] } },
    });
    const changed = await run('role set watcher --rule event= --rule job=read');
    expect(changed.requests.at(-1)?.body).toMatchObject({
      spec: { description: 'looks on', rules: { instance: ['read', 'logs'], job: ['read'] } },
    });
    expect((await run('role rm watcher')).stdout).toBe('watcher removed\n');
  });
});

describe('berth binding', () => {
  it('gives a role to tokens, users and groups', async () => {
    const { requests } = await run(
      'binding create b --role user --for-project web --token ci --user corp/ann --group corp//team',
    );
    expect(requests.at(-1)?.body).toEqual({
      metadata: { name: 'b' },
      spec: {
        role: 'user',
        project: 'web',
        subjects: [
          { kind: 'token', name: 'ci' },
          { kind: 'user', provider: 'corp', name: 'ann' },
          { kind: 'group', provider: 'corp', name: '/team' },
        ],
      },
    });
  });

  it('is listed, by role and project, and removed', async () => {
    expect((await run('binding ls --role user')).stdout).toContain('web-ci  user  web      token:ci');
    expect((await run('binding ls --role viewer')).stderr).toContain('no bindings');
    expect((await run('binding rm web-ci')).stdout).toBe('web-ci removed\n');
  });
});

describe('berth whoami and can-i', () => {
  it('says who one is, and which roles one has by what', async () => {
    expect((await run('whoami')).stdout).toBe(
      [
        'you are   token ci',
        'token id  0123456789',
        'expires   in 60s',
        'role      user in project web',
        'role      viewer in the whole fleet, by binding all-read',
        '',
      ].join('\n'),
    );
  });

  it.each([
    ['can-i create instance --project web', { verb: 'create', resource: 'instance', project: 'web' }, 0, 'yes\n'],
    ['can-i create instances', { verb: 'create', resource: 'instance', project: 'default' }, 0, 'yes\n'],
    ['can-i read host', { verb: 'read', resource: 'host' }, 0, 'yes\n'],
    ['can-i read instance --whole-fleet', { verb: 'read', resource: 'instance' }, 0, 'yes\n'],
    ['can-i read instance a', { verb: 'read', resource: 'instance', project: 'default', name: 'a' }, 0, 'yes\n'],
    ['can-i delete host', { verb: 'delete', resource: 'host' }, 1, 'no: token "ci" does not permit "delete" on host\n'],
    ['can-i delete host -q', { verb: 'delete', resource: 'host' }, 1, ''],
  ])('%s', async (line, body, exitCode, stdout) => {
    const answer = await run(line);
    expect(answer.requests.at(-1)?.body).toEqual(body);
    expect(answer).toMatchObject({ exitCode, stdout, stderr: '' });
  });

  it.each(Object.values(resourceDefinitions))('asks about $plural where they are', async ({ kind, scope }) => {
    const { requests } = await run(`can-i read ${kind}`);
    expect(requests.at(-1)?.body).toEqual({
      ...{ verb: 'read', resource: kind },
      ...(scope === 'project' ? { project: 'default' } : {}),
    });
  });
});
