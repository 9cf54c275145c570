import { createHmac, generateKeyPairSync } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { unverified, verifyIdToken } from './id-token.ts';
import { Issuer } from './issuer.ts';
import { signingKey, TestIssuer } from './testing.ts';

const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

let idp: TestIssuer;
beforeAll(async () => {
  idp = new TestIssuer([await signingKey('k1')]);
});

const verify = (token: string, audience = 'berth') =>
  verifyIdToken(token, {
    issuer: new Issuer(idp.url, { web: idp.web, log: silentLogger }),
    audience,
    nowMs: idp.clock.nowMs(),
  });

describe('an ID token is accepted', () => {
  it.each([
    ['as the issuer makes it', {}],
    ['with our client as the only one of a list', { aud: ['berth'] }],
    ['for several audiences, issued to us', { aud: ['other', 'berth'], azp: 'berth' }],
    ['59 s after it expired', { iat: -200, exp: -59 }],
    ['59 s before it was issued', { iat: 59 }],
    ['59 s before it is valid', { nbf: 59 }],
    ['an hour after it was issued', { iat: -3600, exp: 300 }],
    ['of Keycloak, with typ ID', { typ: 'ID' }],
  ])('%s', async (_, claims) => {
    const token = await idp.token(atTime(claims));
    await expect(verify(token)).resolves.toMatchObject({ iss: idp.url, sub: 'user-1' });
  });

  it.each(['RS256', 'PS256', 'ES256', 'EdDSA'])('signed with %s', async (alg) => {
    idp.keys = [...idp.keys, await signingKey(`of-${alg}`, alg)];
    await expect(verify(await idp.token({}, { key: idp.keys.at(-1) }))).resolves.toMatchObject({ sub: 'user-1' });
  });

  it('without a type in its header', async () => {
    await expect(verify(await idp.token({}, { header: { typ: undefined as never } }))).resolves.toBeDefined();
  });
});

describe('an ID token is refused', () => {
  it.each([
    ['61 s after it expired', { iat: -200, exp: -61 }, 'it has expired'],
    ['61 s before it was issued', { iat: 61, exp: 300 }, 'it is of the future (iat)'],
    ['61 s before it is valid', { nbf: 61 }, 'it is of the future (nbf)'],
    ['61 minutes after it was issued', { iat: -3661, exp: 300 }, 'it was issued more than an hour ago'],
    ['without exp', { exp: undefined }, 'it has no claim exp'],
    ['without iat', { iat: undefined }, 'it has no claim iat'],
    ['without sub', { sub: undefined }, 'it has no claim sub'],
    ['with an empty sub', { sub: '' }, 'its subject (sub)'],
    ['with a sub that is not text', { sub: 7 }, 'its subject (sub)'],
    ['with control characters in sub', { sub: 'a\nb' }, 'its subject (sub)'],
    ['without aud', { aud: undefined }, 'it has no claim aud'],
    ['with an empty list in aud', { aud: [] }, 'it is for another audience'],
    ['for another client', { aud: 'other' }, 'it is for another audience'],
    ['for several audiences without azp', { aud: ['berth', 'other'] }, 'several audiences'],
    ['for several audiences, issued to another', { aud: ['berth', 'other'], azp: 'other' }, 'to another client'],
    ['for us, issued to another', { azp: 'other' }, 'to another client'],
    ['of the issuer with a slash', { iss: 'https://idp.example/' }, 'it is of another issuer'],
    ['of the issuer in capitals', { iss: 'https://IDP.example' }, 'it is of another issuer'],
    ['as an access token of Keycloak', { typ: 'Bearer' }, 'not an ID token'],
    ['as an access token of Entra', { scp: 'openid profile' }, 'it is an access token'],
    ['as a logout token', { events: {} }, 'it is a logout token'],
  ])('%s', async (_, claims, reason) => {
    const refusal = verify(await idp.token(atTime(claims)));
    await expect(refusal).rejects.toMatchObject({ code: 'Unauthenticated', message: expect.stringContaining(reason) });
  });

  it.each(['at+jwt', 'application/at+jwt', 'logout+jwt', 'secevent+jwt'])('with the type %s', async (typ) => {
    await expect(verify(await idp.token({}, { header: { typ } }))).rejects.toThrow(`its type is "${typ}", not JWT`);
  });

  it('without a signature (alg: none)', async () => {
    const [, payload] = (await idp.token()).split('.');
    for (const alg of ['none', 'None', 'NONE'])
      await expect(verify(`${base64url({ alg, kid: 'k1' })}.${payload}.`)).rejects.toThrow('its algorithm must be');
  });

  it('signed by HS256 with the public key as the secret', async () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = publicKey.export({ type: 'spki', format: 'pem' });
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'rsa' };
    idp.keys = [...idp.keys, { ...(await signingKey('rsa')), jwk }];
    const [, payload] = (await idp.token()).split('.');
    const input = `${base64url({ alg: 'HS256', kid: 'rsa', typ: 'JWT' })}.${payload}`;
    const signature = createHmac('sha256', pem).update(input).digest('base64url');
    await expect(verify(`${input}.${signature}`)).rejects.toThrow('its algorithm must be');
  });

  it('with a key in its own header', async () => {
    const own = await signingKey('k1');
    const token = await idp.token({}, { key: own, header: { jwk: own.jwk, jku: 'https://evil.example/jwks' } });
    await expect(verify(token)).rejects.toThrow('its signature is wrong');
  });

  it('signed by a key of another algorithm, or that the issuer does not have', async () => {
    await expect(verify(await idp.token({}, { key: await signingKey('k9') }))).rejects.toThrow('has no such key');
    const eddsa = await signingKey('k1', 'EdDSA');
    await expect(verify(await idp.token({}, { key: eddsa }))).rejects.toThrow('has no such key');
  });

  it('changed after it was signed', async () => {
    const [header, , signature] = (await idp.token()).split('.');
    const [, other] = (await idp.token({ sub: 'root' })).split('.');
    await expect(verify(`${header}.${other}.${signature}`)).rejects.toThrow('its signature is wrong');
  });

  it.each([['a.b'], [''], ['a.b.c.d.e'], ['a.b.c'], [`x.${'y'.repeat(20_000)}.z`]])('that is none: %#', (text) => {
    expect(() => unverified(text)).toThrow('the token is refused');
  });
});

/** Times relative to now. */
function atTime(claims: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const times = Object.entries(claims).map(([name, value]) => [
    name,
    ['iat', 'exp', 'nbf'].includes(name) && typeof value === 'number' ? idp.nowSeconds + value : value,
  ]);
  return Object.fromEntries(times) as Record<string, unknown>;
}
