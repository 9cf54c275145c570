// An issuer of ID tokens for tests, without a socket: its documents come from a function in place of fetch.

import { type CryptoKey, exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose';
import type { Web } from '../../base/fetch-json.ts';
import { createManualClock } from '../../base/manual-clock.ts';

/** A provider, a rule for jobs of a CI system, and the claims of such a job. */
export const provider = {
  name: 'main',
  issuer: 'https://idp.example',
  clientId: 'berth',
  scopes: ['openid'],
  groupsClaim: 'groups',
  userClaim: 'preferred_username',
  deviceCode: true,
};
export const rule = {
  name: 'ci',
  issuer: 'https://idp.example',
  audience: 'https://berth.example',
  claims: { project_id: '42' },
  role: 'user',
  project: 'web',
  expires: '1h',
  expiresMs: 3_600_000,
};
export const job = { aud: rule.audience, sub: 'project_path:acme/web', project_id: '42', pipeline_source: 'push' };

interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: object;
}

export async function signingKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg);
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

type Answer = Response | 'hangs' | 'unreachable';

export class TestIssuer {
  readonly url: string;
  readonly clock = createManualClock();
  /** Paths that were fetched. */
  readonly fetched: string[] = [];
  /** Of the forms that were sent to it. */
  readonly sent: { readonly authorization: string | undefined; readonly body: string }[] = [];
  /** Published; the first one signs. */
  keys: readonly SigningKey[];
  /** Replaces answers by path. */
  readonly answers = new Map<string, () => Answer>();

  constructor(keys: readonly SigningKey[], url = 'https://idp.example') {
    this.keys = keys;
    this.url = url;
  }

  get web(): Web {
    return { clock: this.clock, fetch: (url, init) => this.#answer(url, init) };
  }

  get nowSeconds(): number {
    return Math.floor(this.clock.nowMs() / 1000);
  }

  count(path: string): number {
    return this.fetched.filter((each) => each === path).length;
  }

  /** A token with good claims, unless changed; undefined removes a claim. */
  async token(
    changes: Readonly<Record<string, unknown>> = {},
    { header = {}, key = this.keys[0] }: { header?: Partial<JWTHeaderParameters>; key?: SigningKey | undefined } = {},
  ): Promise<string> {
    if (key === undefined) throw new Error('the issuer has no key');
    const now = this.nowSeconds;
    const claims = { iss: this.url, aud: 'berth', sub: 'user-1', iat: now, exp: now + 300, ...changes };
    return new SignJWT(JSON.parse(JSON.stringify(claims)) as Record<string, unknown>)
      .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'JWT', ...header })
      .sign(key.privateKey);
  }

  async #answer(url: string, { signal, headers, body }: Parameters<Web['fetch']>[1]): Promise<Response> {
    if (!url.startsWith(`${this.url}/`)) throw new Error(`nothing at ${url}`);
    const pathname = url.slice(this.url.length);
    this.fetched.push(pathname);
    if (body !== undefined) this.sent.push({ authorization: headers['authorization'], body });
    const answer = this.answers.get(pathname)?.() ?? this.#document(pathname);
    if (answer === 'unreachable') throw new Error('connection refused');
    if (answer !== 'hangs') return answer;
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  }

  #document(path: string): Response {
    if (path === '/.well-known/openid-configuration')
      return Response.json({ issuer: this.url, jwks_uri: `${this.url}/jwks`, token_endpoint: `${this.url}/token` });
    if (path === '/jwks') return Response.json({ keys: this.keys.map(({ jwk }) => jwk) });
    return new Response('nothing here', { status: 404 });
  }
}
