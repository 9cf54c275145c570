// A real OpenID provider on loopback, and a browser that logs in to it: it follows redirects, keeps cookies and submits the forms.

import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import { Provider } from 'oidc-provider';

export interface LoginProvider {
  readonly issuer: string;
  /** Replaces the keys, under the same issuer: sessions and codes are forgotten. */
  rotate(): Promise<void>;
  /** Answers instead of the provider; undefined: the provider answers again. */
  intercept(listener: RequestListener | undefined): void;
  close(): Promise<void>;
}

/** Every name can log in, with the group `team-NAME`. */
export async function startLoginProvider(): Promise<LoginProvider> {
  let handle: RequestListener = () => {};
  let instead: RequestListener | undefined;
  const server = createServer((request, response) => (instead ?? handle)(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // as listen() gives it
  const rotate = async (): Promise<void> => {
    handle = (await newProvider(issuer)).callback();
  };
  await rotate();
  return {
    issuer,
    rotate,
    intercept: (listener) => void (instead = listener),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

let keys = 0;

async function newProvider(issuer: string): Promise<Provider> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid: `key-${++keys}`, alg: 'RS256', use: 'sig' };
  const deviceCode = 'urn:ietf:params:oauth:grant-type:device_code';
  return new Provider(issuer, {
    jwks: { keys: [jwk] },
    cookies: { keys: ['test'] },
    clients: [
      {
        client_id: 'berth',
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        redirect_uris: ['http://127.0.0.1/callback', 'http://127.0.0.1/ui/login/callback'],
        grant_types: ['authorization_code', deviceCode],
        response_types: ['code'],
      },
      {
        client_id: 'berth-web',
        client_secret: 'hush',
        application_type: 'native',
        redirect_uris: ['http://127.0.0.1/callback', 'http://127.0.0.1/ui/login/callback'],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    features: {
      deviceFlow: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context: unknown, audience: string) => ({
          ...{ audience, scope: 'openid profile groups', accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } },
        }),
        useGrantedResource: () => true,
      },
    },
    extraTokenClaims: (_context: unknown, { accountId }: { readonly accountId?: string }) => ({
      groups: [`team-${accountId}`],
    }),
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, groups: [`team-${id}`] }),
    }),
  });
}

/** Follows `url` as a browser, logs in as `user` and consents. Returns the last page, and where it was. */
export async function browse(url: string, user: string): Promise<{ readonly url: string; readonly page: string }> {
  const cookies = new Map<string, string>();
  let next: { url: string; form?: URLSearchParams } | undefined = { url };
  let last = { url, page: '' };
  for (let steps = 0; next !== undefined; steps++) {
    if (steps > 20) throw new Error(`the browser goes round in circles at ${next.url}`);
    const { url: at, form }: { url: string; form?: URLSearchParams } = next;
    const response = await fetch(at, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form ? { method: 'POST', body: form } : {}),
    });
    for (const text of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(text) ?? [];
      if (value === '') cookies.delete(name);
      else cookies.set(name, value);
    }
    const location = response.headers.get('location');
    last = { url: at, page: await response.text() };
    next = location === null ? formIn(last, user) : { url: new URL(location, at).href };
  }
  return last;
}

function formIn(
  { url, page }: { readonly url: string; readonly page: string },
  user: string,
): { url: string; form: URLSearchParams } | undefined {
  const [, form] = /(<form[\s\S]*?<\/form>)/.exec(page) ?? [];
  if (form === undefined) return undefined;
  const values = new URLSearchParams();
  for (const [input] of form.matchAll(/<input[^>]*>/g)) {
    const [, name = ''] = /name="([^"]*)"/.exec(input) ?? [];
    const [, value = ''] = /value="([^"]*)"/.exec(input) ?? [];
    values.set(name, name === 'login' ? user : name === 'password' ? 'any' : value);
  }
  const [, action = url] = /action="([^"]*)"/.exec(form) ?? [];
  return { url: new URL(action.replaceAll('&amp;', '&'), url).href, form: values };
}
