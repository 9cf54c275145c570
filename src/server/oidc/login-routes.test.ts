import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { systemFetch } from '../../base/system.ts';
import { keys } from '../../core/state/keys.ts';
import { startTestServer } from '../testing.ts';
import { Logins } from './logins.ts';
import { job, provider, rule, signingKey, TestIssuer } from './testing.ts';

let idp: TestIssuer;
let server: Awaited<ReturnType<typeof startTestServer>>;
const failures: [string, string][] = [];
let minted = 0;

beforeAll(async () => {
  idp = new TestIssuer([await signingKey('k1')]);
  const secret = { ...provider, name: 'secret', clientId: 'web', clientSecret: 'hush' };
  const rules = [rule, { ...rule, name: 'gone', claims: { project_id: '7' }, role: 'no-such-role' }];
  server = await startTestServer({
    login: {
      logins: new Logins({ providers: [provider, secret], rules }, { web: idp.web, log: silentLogger }),
      mint: (kind) => ({ text: `berth_${kind}_${++minted}`, tokenId: `id${minted}`, digest: 'd' }),
      randomState: () => 'x'.repeat(32),
      onLoginFailed: (address, reason) => failures.push([address, reason]),
    },
  });
  await server.client.create('binding', {
    metadata: { name: 'ops' },
    spec: { role: 'user', project: 'web', subjects: [{ kind: 'group', name: 'ops', provider: 'main' }] },
  });
});
afterAll(() => server.close());
beforeEach(() => void failures.splice(0));

async function post(body: object) {
  const response = await systemFetch(`${server.url}/v1/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const login = async (claims: Readonly<Record<string, unknown>>) => post({ idToken: await idp.token(claims) });

it('shows the providers without their secrets', async () => {
  const response = await systemFetch(`${server.url}/v1/login`);
  const { name, issuer, clientId, scopes, deviceCode } = provider;
  const shown = { name, issuer, clientId, scopes, deviceCode, exchange: 'client' };
  expect(await response.json()).toEqual({
    providers: [shown, { ...shown, name: 'secret', clientId: 'web', exchange: 'server' }],
  });
});

describe('an ID token is exchanged', () => {
  it('for the token of a user, with the groups of that moment', async () => {
    const { status, body } = await login({ groups: ['ops', 'dev'], preferred_username: 'ada' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ kind: 'user', user: 'ada', token: expect.stringMatching(/^berth_u_/) });
    const token = server.plane.decider.cache.get('token', keys.token(String(body['name'])))?.value;
    expect(token?.spec).toMatchObject({
      user: { provider: 'main', subject: 'user-1', name: 'ada', groups: ['ops', 'dev'] },
      expiresAtMs: body['expiresAtMs'],
    });
    const { cache } = server.plane.decider;
    expect(cache.get('credential', keys.credential(token?.status.tokenId ?? ''))?.value.uid).toBe(token?.metadata.id);
    expect(JSON.stringify(token)).not.toContain('berth_u_');
  });

  it('for the token of a workload, with the role of its rule', async () => {
    const { status, body } = await login(job);
    expect(status).toBe(200);
    expect(body).toMatchObject({ kind: 'workload', user: job.sub });
    const token = await server.client.get('token', String(body['name']));
    expect(token.spec).toMatchObject({ role: 'user', project: 'web', description: expect.stringContaining('rule ci') });
    expect(token.spec.user).toBeUndefined();
  });

  it('once, also when two come at once', async () => {
    const idToken = await idp.token({ groups: ['ops'], jti: 'once' });
    const answers = await Promise.all([post({ idToken }), post({ idToken }), post({ idToken })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
    expect((await post({ idToken })).body['error']).toMatchObject({ message: expect.stringContaining('used before') });
  });

  it('once, also after its token was revoked', async () => {
    const idToken = await idp.token({ ...job, jti: 'revoked' });
    const { body } = await post({ idToken });
    await server.client.delete('token', String(body['name']));
    expect((await post({ idToken })).status).toBe(401);
  });
});

describe('a login is refused', () => {
  it.each([
    ['without a binding', { sub: 'stranger' }, 403, 'no binding gives the user "stranger"'],
    ['by a group of another provider', { aud: 'web', groups: ['ops'] }, 403, 'no binding gives'],
    ['by the address of mail of another', { sub: 'x', email: 'ops', groups: [] }, 403, 'no binding gives'],
    ['whose rule gives a role that does not exist', { ...job, project_id: '7' }, 403, 'which does not exist'],
    ['that has expired', { groups: ['ops'], exp: 1 }, 401, 'it has expired'],
  ])('%s, and stores nothing', async (_, claims, status, reason) => {
    const before = server.plane.decider.cache.revision;
    const answer = await login(claims);
    expect(answer).toMatchObject({ status, body: { error: { message: expect.stringContaining(reason) } } });
    expect(server.plane.decider.cache.revision).toBe(before);
    expect(failures).toEqual([['127.0.0.1', expect.stringContaining(reason)]]);
  });

  it.each([
    ['with an ID token and a code', { idToken: 'x', ...codeFor('http://127.0.0.1:1/') }, 'idToken'],
    ['by a code without a nonce', { ...codeFor('http://127.0.0.1:1/'), nonce: undefined }, 'nonce'],
    ['without an ID token', {}, 'idToken'],
    ['with an unknown field', { idToken: 'x', role: 'admin' }, 'role'],
    ['by a code for another machine', codeFor('http://evil.example:80/'), 'code.redirectUri'],
    ['by a code for localhost', codeFor('http://localhost:80/'), 'code.redirectUri'],
  ])('%s', async (_, body, field) => {
    expect(await post(body)).toMatchObject({ status: 400, body: { error: { field } } });
  });

  it('where no provider is configured', async () => {
    const plain = await startTestServer();
    const response = await systemFetch(`${plain.url}/v1/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ idToken: 'x' }),
    });
    expect(response.status).toBe(404);
    await plain.close();
  });

  it('with nothing of the ID token in the answer', async () => {
    const idToken = await idp.token({ sub: 'stranger' });
    expect(JSON.stringify((await post({ idToken })).body)).not.toContain(idToken.slice(-40));
  });
});

function codeFor(redirectUri: string): object {
  return { code: { provider: 'secret', code: 'c', codeVerifier: 'v'.repeat(43), redirectUri }, nonce: 'n' };
}
