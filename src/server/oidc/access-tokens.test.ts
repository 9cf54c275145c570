// Access tokens of a provider: which are taken, where, and what becomes of them.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '../../api/errors.ts';
import { silentLogger } from '../../base/log.ts';
import { keys } from '../../core/state/keys.ts';
import type { Identity, Shown } from '../http/identity/authenticate.ts';
import { startTestServer } from '../testing.ts';
import { AccessTokens } from './access-tokens.ts';
import { Logins } from './logins.ts';
import { provider, rule, signingKey, TestIssuer } from './testing.ts';

const audience = 'https://berth.example/mcp';
let idp: TestIssuer;
let server: Awaited<ReturnType<typeof startTestServer>>;
let tokens: AccessTokens;
let passed: Shown[];
let failures: string[];
let minted = 0;

const make = (salt: number) => {
  const { decider } = server.plane;
  return new AccessTokens({
    login: {
      logins: new Logins({ providers: [provider], rules: [rule] }, { web: idp.web, log: silentLogger }),
      mint: (kind) => ({ text: `berth_${kind}_${++minted}`, tokenId: `id${minted}`, digest: `d${minted}` }),
      randomState: () => 'x'.repeat(32),
      onLoginFailed: (address, reason) => failures.push(`${address}: ${reason}`),
    },
    decider: { ...decider, clock: idp.clock },
    audit: undefined,
    audience,
    salt: Uint8Array.of(salt),
  });
};

beforeEach(async () => {
  idp = new TestIssuer([await signingKey('k1')]);
  server = await startTestServer();
  await server.client.create('binding', {
    metadata: { name: 'ops' },
    spec: { role: 'user', project: 'web', subjects: [{ kind: 'group', name: 'ops', provider: 'main' }] },
  });
  tokens = make(1);
  [passed, failures] = [[], []];
});
afterEach(() => server.close());

const good = { aud: audience, groups: ['ops'], client_id: 'some-client', jti: 'a' };
const show = (text: string, more: Partial<Shown> = {}, by = tokens): Identity | Promise<Identity> =>
  by.identify(
    { authorizations: [`Bearer ${text}`], certificate: undefined, address: '10.0.0.1', url: '/mcp', ...more },
    (shown) => {
      passed.push(shown);
      return { kind: 'admin' };
    },
  );
const shownTokens = () => passed.map(({ authorizations }) => authorizations.join());
const logins = () => [...server.plane.decider.cache.list('token')].filter(({ value }) => value.spec.user);

describe('an access token', () => {
  it('is exchanged once for a token with what the user and the groups have', async () => {
    const text = await idp.token({ ...good, exp: idp.nowSeconds + 600 }, { header: { typ: 'at+jwt' } });
    await Promise.all([show(text), show(text), show(text, { url: '/mcp?x=1' })]);
    expect(new Set(shownTokens())).toEqual(new Set([`Bearer berth_u_${minted}`]));
    expect(logins().map(({ value }) => value.spec)).toMatchObject([
      {
        expiresAtMs: idp.nowSeconds * 1_000 + 600_000,
        user: { provider: 'main', subject: 'user-1', groups: ['ops'] },
      },
    ]);
  });

  it('is exchanged by each server for itself, and again after it was forgotten', async () => {
    const text = await idp.token(good);
    await show(text);
    await show(text, {}, make(2));
    expect(new Set(shownTokens()).size).toBe(2);
    expect(logins()).toHaveLength(2);
  });

  it('is refused when it has expired, also when it was exchanged before', async () => {
    const text = await idp.token({ ...good, exp: idp.nowSeconds + 60 });
    await show(text);
    idp.clock.advance(180_000);
    expect(await show(text)).toMatchObject({
      code: 'Unauthenticated',
      message: expect.stringContaining('has expired'),
    });
  });

  it.each<[string, Record<string, unknown>, { typ?: string }, string, string]>([
    ['for another resource', { aud: 'https://other.example/mcp' }, {}, 'Unauthenticated', 'another audience'],
    ['for the client, as an ID token is', { aud: 'berth' }, {}, 'Unauthenticated', 'another audience'],
    ['for the rule of a CI system', { aud: rule.audience }, {}, 'Unauthenticated', 'another audience'],
    ['of another issuer', { iss: 'https://evil.example' }, {}, 'Unauthenticated', 'no provider has the issuer'],
    ['of the wrong type', {}, { typ: 'logout+jwt' }, 'Unauthenticated', 'not at+jwt'],
    ['that Keycloak marks as an ID token', { typ: 'ID' }, {}, 'Unauthenticated', 'not Bearer'],
    ['of a CI job', { project_id: '42' }, {}, 'Unauthenticated', 'CI job'],
    ['without a subject', { sub: undefined }, {}, 'Unauthenticated', 'sub'],
    ['without an end', { exp: undefined }, {}, 'Unauthenticated', 'exp'],
    ['of the future', { nbf: 4_000_000_000 }, {}, 'Unauthenticated', 'future'],
    ['of a stranger', { groups: [] }, {}, 'Forbidden', 'no binding'],
  ])('is refused %s', async (_name, claims, header, code, why) => {
    const text = await idp.token({ ...good, ...claims }, { header });
    const refusal = await show(text);
    expect(refusal).toBeInstanceOf(ApiError);
    expect(refusal).toMatchObject({ code, message: expect.stringContaining(why) });
    expect(failures).toEqual([expect.stringMatching(/^10\.0\.0\.1: /)]);
    expect([passed, logins()]).toEqual([[], []]);
    expect(refusal instanceof ApiError && refusal.message).not.toContain(text.slice(0, 20));
  });

  it('is refused with a forged signature', async () => {
    const text = await idp.token(good, { key: await signingKey('k1') });
    expect(await show(text)).toMatchObject({ code: 'Unauthenticated', message: expect.stringContaining('signature') });
  });

  it('cannot be judged while the keys of its issuer cannot be read', async () => {
    idp.answers.set('/jwks', () => 'unreachable');
    await expect(show(await idp.token(good))).rejects.toMatchObject({ code: 'Unavailable' });
    expect(failures).toEqual([]);
  });

  it('is none elsewhere, nor is anything else', async () => {
    const text = await idp.token(good);
    for (const url of ['/v1/instances', '/mcp/other', '/']) await show(text, { url });
    for (const authorizations of [[], ['Bearer berth_u_1'], ['Basic YTpi'], [`Bearer ${text}`, `Bearer ${text}`]])
      await show('', { authorizations });
    expect(passed).toHaveLength(7);
    expect(logins()).toEqual([]);
  });

  it('that was revoked stays so', async () => {
    const text = await idp.token(good);
    await show(text);
    const [login] = logins();
    await server.client.delete('token', login?.value.metadata.name ?? '');
    await show(text);
    expect(new Set(shownTokens()).size).toBe(1);
    expect(logins()).toEqual([]);
    expect(server.plane.decider.cache.get('token', keys.token(login?.value.metadata.name ?? ''))).toBeUndefined();
  });
});
