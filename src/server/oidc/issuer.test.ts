import { beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { verifyIdToken } from './id-token.ts';
import { Issuer } from './issuer.ts';
import { signingKey, TestIssuer } from './testing.ts';

const minute = 60_000;
const metadata = '/.well-known/openid-configuration';
let idp: TestIssuer;
let issuer: Issuer;
beforeEach(async () => {
  idp = new TestIssuer([await signingKey('k1')]);
  issuer = new Issuer(idp.url, { web: idp.web, log: silentLogger });
});

const verify = (token: string) => verifyIdToken(token, { issuer, audience: 'berth', nowMs: idp.clock.nowMs() });

describe('the keys of an issuer', () => {
  it('are read once for many tokens', async () => {
    await Promise.all(Array.from({ length: 20 }, async () => verify(await idp.token())));
    expect(idp.fetched).toEqual(['/.well-known/openid-configuration', '/jwks']);
  });

  it('are read again when a token has a new key', async () => {
    await verify(await idp.token());
    idp.keys = [await signingKey('k2'), ...idp.keys];
    idp.clock.advance(31_000);
    await verify(await idp.token());
    expect(idp.count('/jwks')).toBe(2);
  });

  it('are forgotten when the issuer has dropped them', async () => {
    const old = await idp.token({ exp: idp.nowSeconds + 3600 });
    await verify(old);
    idp.keys = [await signingKey('k2')];
    idp.clock.advance(11 * minute);
    await expect(verify(old)).rejects.toThrow('has no such key');
  });

  it('are read once in 30 s, however many unknown keys tokens name', async () => {
    await verify(await idp.token());
    const flood = async () => {
      for (let i = 0; i < 50; i++) {
        const stranger = idp.token({}, { header: { kid: `${idp.clock.nowMs()}-${i}` } });
        await expect(verify(await stranger)).rejects.toThrow('has no such key');
      }
    };
    await flood();
    expect(idp.count('/jwks')).toBe(1);
    idp.clock.advance(31_000);
    await flood();
    expect(idp.count('/jwks')).toBe(2);
    await verify(await idp.token());
  });

  it('are not read again for an unknown key that was asked for', async () => {
    let ticks = 0; // time goes on while it works
    const clock = { ...idp.clock, monotonicMs: () => idp.clock.monotonicMs() + ticks++ / 1_000 };
    issuer = new Issuer(idp.url, { web: { ...idp.web, clock }, log: silentLogger });
    await expect(verify(await idp.token({}, { header: { kid: 'k9' } }))).rejects.toThrow('has no such key');
    idp.clock.advance(minute);
    await expect(verify(await idp.token({}, { header: { kid: 'k9' } }))).rejects.toThrow('has no such key');
    expect(idp.count('/jwks')).toBe(1);
  });

  it('are used for an hour while the issuer is down', async () => {
    await verify(await idp.token());
    idp.answers.set('/jwks', () => 'unreachable');
    idp.clock.advance(59 * minute);
    await verify(await idp.token());
    idp.clock.advance(2 * minute);
    await expect(verify(await idp.token())).rejects.toMatchObject({ code: 'Unavailable' });
    idp.answers.clear();
    idp.clock.advance(6_000);
    await verify(await idp.token());
  });
});

describe('an issuer is not believed', () => {
  const refusals: readonly (readonly [string, string, () => Response | 'unreachable'])[] = [
    ['when its keys redirect', '/jwks', () => Response.redirect('https://evil.example/jwks', 302)],
    ['when its keys have 10 MB', '/jwks', () => new Response(' '.repeat(10_000_000))],
    ['when its keys are an array', '/jwks', () => Response.json([])],
    ['when its keys are not there', '/jwks', () => Response.json({ keys: [] }, { status: 404 })],
    ['when its keys are no JSON', '/jwks', () => new Response('<html>')],
    ['when its metadata are of another issuer', metadata, () => Response.json({ issuer: 'https://idp.example/' })],
    ['when its metadata redirect', metadata, () => Response.redirect('https://evil.example/', 302)],
    ['when its keys are at a plain address', metadata, () => keysAt('http://idp.example/jwks')],
    ['when its keys are on this machine', metadata, () => keysAt('http://127.0.0.1/jwks')],
    ['when it is unreachable', metadata, () => 'unreachable'],
  ];
  it.each(refusals)('%s', async (_, path, answer) => {
    idp.answers.set(path, answer);
    await expect(verify(await idp.token())).rejects.toMatchObject({ code: 'Unavailable' });
    expect(idp.fetched.every((each) => each === '/jwks' || each === metadata)).toBe(true);
  });

  it('when it does not answer within 5 s', async () => {
    idp.answers.set('/jwks', () => 'hangs');
    const refusal = expect(verify(await idp.token())).rejects.toMatchObject({ code: 'Unavailable' });
    await expect.poll(() => idp.count('/jwks')).toBe(1);
    idp.clock.advance(5_000);
    await refusal;
  });

  it('when a body grows beyond 256 KiB, which is not read to its end', async () => {
    let sent = 0;
    const endless = new ReadableStream({
      pull(controller) {
        sent += 65_536;
        controller.enqueue(Buffer.alloc(65_536, ' '));
      },
    });
    idp.answers.set('/jwks', () => new Response(endless));
    await expect(verify(await idp.token())).rejects.toMatchObject({ code: 'Unavailable' });
    expect(sent).toBeLessThan(1_000_000);
  });
});

function keysAt(address: string): Response {
  return Response.json({ issuer: 'https://idp.example', jwks_uri: address });
}
