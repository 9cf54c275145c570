import { beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { Logins } from './logins.ts';
import { job, provider, rule, signingKey, TestIssuer } from './testing.ts';

let idp: TestIssuer;
let logins: Logins;
beforeEach(async () => {
  idp = new TestIssuer([await signingKey('k1')]);
  const providers = [provider, { ...provider, name: 'secret', clientId: 'web', clientSecret: 'hush:/' }];
  logins = new Logins(
    { providers, rules: [{ ...rule, name: 'other', claims: { project_id: '7' } }, rule] },
    { web: idp.web, log: silentLogger },
  );
});

const login = async (claims: Readonly<Record<string, unknown>>, nonce?: string) =>
  logins.byIdToken(await idp.token(claims), nonce);

describe('an ID token', () => {
  it('of a person is a login with groups, for 12 hours', async () => {
    await expect(login({ groups: ['ops'], preferred_username: 'ada', nonce: 'n' }, 'n')).resolves.toMatchObject({
      user: { issuer: 'https://idp.example', subject: 'user-1', name: 'ada' },
      grant: { kind: 'user', provider: 'main', groups: ['ops'] },
      expiresInMs: 43_200_000,
    });
  });

  it('of a job is a login by the rule that admits it', async () => {
    await expect(login(job)).resolves.toMatchObject({
      grant: { kind: 'workload', rule: 'ci', role: 'user', project: 'web' },
      expiresInMs: 3_600_000,
    });
  });

  it.each([
    ['with the nonce of another login', { nonce: 'a' }, 'b', 'its nonce'],
    ['with a nonce that is not given', { nonce: 'a' }, undefined, 'its nonce'],
    ['without the nonce of the login', {}, 'b', 'its nonce'],
    [
      'of a job that asked for the audience of people',
      { ...job, aud: 'berth', groups_direct: ['ops'] },
      undefined,
      'it is of a CI job',
    ],
    ['of a person for the audience of jobs', { aud: rule.audience }, undefined, 'no rule of workloadIdentity admits'],
    ['of a job for both', { ...job, aud: ['berth', rule.audience] }, undefined, 'several audiences'],
    ['of a job of another project', { ...job, project_id: '9' }, undefined, 'no rule of workloadIdentity admits'],
    ["of a fork's merge request", { ...job, pipeline_source: 'merge_request_event' }, undefined, 'no rule'],
    ['of an unknown issuer', { iss: 'https://evil.example' }, undefined, 'no provider or rule has the issuer'],
    ['of the issuer with a slash', { iss: 'https://idp.example/' }, undefined, 'no provider or rule has the issuer'],
    ['for an unknown audience', { aud: 'other' }, undefined, 'it is for another audience'],
    ['without an audience', { aud: undefined }, undefined, 'it is for another audience'],
    ['whose groups were left out', { _claim_names: { groups: 'src1' } }, undefined, 'in too many groups'],
  ])('is refused %s', async (_, claims, nonce, reason) => {
    await expect(login(claims, nonce)).rejects.toThrow(reason);
  });
});

it('without a nonce is refused where device codes are off', async () => {
  const off = new Logins(
    { providers: [{ ...provider, deviceCode: false }], rules: [] },
    { web: idp.web, log: silentLogger },
  );
  await expect(off.byIdToken(await idp.token(), undefined)).rejects.toThrow('it has no nonce');
  await expect(off.byIdToken(await idp.token({ nonce: 'n' }), 'n')).resolves.toBeDefined();
});

describe('what marks an ID token as spent', () => {
  it('is the same for one id, and another for another', async () => {
    const [a, again, b] = [
      await login({ jti: 'a' }),
      await login({ jti: 'a', sub: 'user-2' }),
      await login({ jti: 'b' }),
    ];
    expect(again.spent.digest).toBe(a.spent.digest);
    expect(b.spent.digest).not.toBe(a.spent.digest);
  });

  it('is what was signed, where a token has no id', async () => {
    const token = await idp.token();
    const [first, second] = [await logins.byIdToken(token, undefined), await logins.byIdToken(token, undefined)];
    expect(second.spent.digest).toBe(first.spent.digest);
    expect((await login({ sub: 'user-2' })).spent.digest).not.toBe(first.spent.digest);
  });

  it('is kept until the token is too old on every server', async () => {
    const { spent } = await login({ exp: idp.nowSeconds + 1e9 });
    expect(spent.untilMs).toBe((idp.nowSeconds + 3600) * 1000 + 300_000);
  });
});

describe('a code of a provider with a secret', () => {
  const codeLogin = {
    provider: 'secret',
    code: 'c',
    codeVerifier: 'v',
    redirectUri: 'http://127.0.0.1:1/',
    nonce: 'n',
  };

  it('is exchanged by the server', async () => {
    const idToken = await idp.token({ aud: 'web', nonce: 'n' });
    idp.answers.set('/token', () => Response.json({ id_token: idToken }));
    await expect(logins.byCode(codeLogin)).resolves.toMatchObject({ grant: { kind: 'user', provider: 'secret' } });
    expect(idp.sent.at(-1)).toEqual({
      authorization: `Basic ${Buffer.from('web:hush%3A%2F').toString('base64')}`,
      body: 'grant_type=authorization_code&code=c&code_verifier=v&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2F',
    });
  });

  it.each([
    [
      'when the provider refuses it',
      () => Response.json({ error: 'invalid_grant' }, { status: 400 }),
      'Unauthenticated',
    ],
    ['when there is no ID token', () => Response.json({ access_token: 'x' }), 'Unauthenticated'],
    ['when the provider redirects', () => Response.redirect('https://evil.example/', 307), 'Unavailable'],
    ['when the provider is away', () => 'unreachable' as const, 'Unavailable'],
  ])('is refused %s', async (_, answer, code) => {
    idp.answers.set('/token', answer);
    await expect(logins.byCode(codeLogin)).rejects.toMatchObject({ code });
  });

  it('is refused for an ID token with another nonce', async () => {
    const idToken = await idp.token({ aud: 'web', nonce: 'other' });
    idp.answers.set('/token', () => Response.json({ id_token: idToken }));
    await expect(logins.byCode(codeLogin)).rejects.toThrow('its nonce');
  });

  it('is refused for a provider without a secret, or that is not there', async () => {
    for (const name of ['main', 'nowhere'])
      await expect(logins.byCode({ ...codeLogin, provider: name })).rejects.toMatchObject({ field: 'provider' });
    expect(idp.fetched).toEqual([]);
  });
});
