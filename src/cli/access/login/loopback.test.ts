import { createHash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../../base/manual-clock.ts';
import { systemFetch } from '../../../base/system.ts';
import { logInWithBrowser } from './loopback.ts';
import type { Provider } from './provider.ts';

const provider: Provider = {
  name: 'main',
  issuer: 'https://idp.example',
  clientId: 'berth',
  scopes: ['openid', 'profile'],
  deviceCode: false,
  exchange: 'client',
  metadata: {
    issuer: 'https://idp.example',
    jwksUri: 'https://idp.example/jwks',
    authorizationEndpoint: 'https://idp.example/auth?tenant=1',
    tokenEndpoint: 'https://idp.example/token',
    answersWithIssuer: true,
  },
};

interface Asked {
  readonly address: URL;
  readonly redirectUri: string;
  readonly state: string;
}

/** A login whose browser does `visit` with the address that it is shown. */
async function logIn(visit: (asked: Asked) => Promise<unknown>, changes: Partial<Provider> = {}) {
  const clock = createManualClock();
  const forms: URLSearchParams[] = [];
  const interruption = new AbortController();
  let visited: Promise<unknown> = Promise.resolve();
  let address = new URL('https://none.example');
  const outcome = await logInWithBrowser(
    { ...provider, ...changes },
    {
      clock,
      randomSecret: (length) => Buffer.alloc(length, forms.length + length),
      signal: interruption.signal,
      show(url) {
        address = new URL(url);
        const query = address.searchParams;
        visited = visit({ address, redirectUri: query.get('redirect_uri') ?? '', state: query.get('state') ?? '' });
        visited.then(
          (what) => {
            if (what === 'interrupt') interruption.abort();
            if (what === 'wait') clock.advance(300_000);
          },
          () => {},
        );
      },
      async fetch(_url, { body = '' }) {
        forms.push(new URLSearchParams(body));
        return Response.json({ id_token: 'signed' });
      },
    },
  ).catch((error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error)));
  return { outcome, forms, address, page: await visited };
}

const answer =
  (query: Readonly<Record<string, string>>) =>
  async ({ redirectUri, state }: Asked) => {
    const url = new URL(redirectUri);
    url.search = new URLSearchParams({ state, iss: 'https://idp.example', code: 'c', ...query }).toString();
    return systemFetch(url.href);
  };

describe('a login in the browser', () => {
  it('is authorization code with PKCE on a loopback address', async () => {
    const { outcome, forms, address, page } = await logIn(answer({}));
    const asked = Object.fromEntries(address.searchParams);
    const [form = new URLSearchParams()] = forms;
    expect(asked).toMatchObject({
      tenant: '1',
      response_type: 'code',
      client_id: 'berth',
      redirect_uri: expect.stringMatching(/^http:\/\/(127\.0\.0\.1|\[::1\]):\d+\/callback$/),
      scope: 'openid profile',
      code_challenge_method: 'S256',
      code_challenge: createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url'),
    });
    expect(Object.fromEntries(form)).toMatchObject({
      grant_type: 'authorization_code',
      code: 'c',
      client_id: 'berth',
      redirect_uri: asked['redirect_uri'],
    });
    expect(outcome).toEqual({ idToken: 'signed', nonce: asked['nonce'] });
    const response = page as Response;
    expect(response.headers.get('content-security-policy')).toBe("default-src 'none'");
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.text()).not.toMatch(/<script|c=/);
  });

  it('gives the code to the server where the client has a secret', async () => {
    const { outcome, forms } = await logIn(answer({}), { exchange: 'server' });
    expect(outcome).toMatchObject({ code: { provider: 'main', code: 'c' }, nonce: expect.any(String) });
    expect(forms).toEqual([]);
  });

  it('listens no longer after the answer', async () => {
    const { address } = await logIn(answer({}));
    await expect(systemFetch(address.searchParams.get('redirect_uri') ?? '')).rejects.toThrow('fetch failed');
  });

  it('takes an answer without iss of a provider that does not promise it', async () => {
    const { outcome } = await logIn(
      async ({ redirectUri, state }) => systemFetch(`${redirectUri}?state=${state}&code=c`),
      { metadata: { ...provider.metadata, answersWithIssuer: false } },
    );
    expect(outcome).toMatchObject({ idToken: 'signed' });
  });
});

describe('a login in the browser ends', () => {
  it.each([
    ['with the state of another login', answer({ state: 'x' }), 'is not to this login'],
    ['with the answer of another provider', answer({ iss: 'https://evil.example' }), 'is not of "main"'],
    ['with the issuer with a slash', answer({ iss: 'https://idp.example/' }), 'is not of "main"'],
    ['with an error', answer({ error: 'access_denied' }), 'refuses the login: access_denied'],
    [
      'without iss of a provider that promises it',
      async ({ redirectUri, state }: Asked) => systemFetch(`${redirectUri}?state=${state}&code=c`),
      'is not of "main"',
    ],
    [
      'without a code',
      async ({ redirectUri, state }: Asked) => systemFetch(`${redirectUri}?state=${state}&iss=https://idp.example`),
      'has no code',
    ],
    [
      'with two codes',
      async ({ redirectUri, state }: Asked) =>
        systemFetch(`${redirectUri}?state=${state}&iss=https://idp.example&code=a&code=b`),
      'two values of code',
    ],
    ['when the user interrupts it', async () => 'interrupt', 'Interrupted'],
    ['after 5 minutes', async () => 'wait', 'no answer within 5 minutes'],
  ])('%s', async (_, visit, message) => {
    const { outcome, forms } = await logIn(visit);
    expect(outcome).toContain(message);
    expect(forms).toEqual([]);
  });
});

it('turns other requests away, and waits on', async () => {
  const statuses: unknown[] = [];
  const { outcome } = await logIn(async (asked) => {
    const { redirectUri, state } = asked;
    statuses.push((await systemFetch(new URL('/favicon.ico', redirectUri))).status);
    statuses.push((await systemFetch(redirectUri, { method: 'POST' })).status);
    statuses.push(await statusWithHost(`${redirectUri}?state=${state}&code=evil`, 'evil.example'));
    return answer({})(asked);
  });
  expect(statuses).toEqual([404, 404, 404]);
  expect(outcome).toMatchObject({ idToken: 'signed' });
});

function statusWithHost(url: string, host: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .once('error', reject)
      .end();
  });
}
