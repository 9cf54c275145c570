// A login in the browser: authorization code with PKCE and a loopback redirect (RFC 7636, 8252). It listens on this machine only, for
// one answer, and believes it only if it has the state of this login and comes from the provider that was asked.

import { createHash } from 'node:crypto';
import type { Web } from '../../../base/fetch-json.ts';
import { LoopbackListener } from './loopback-listener.ts';
import { askProvider, failed, type Provider, reasonIn } from './provider.ts';

export interface BrowserLogin extends Web {
  readonly randomSecret: (length: number) => Uint8Array;
  /** Shows the address to the user, and opens it if it can. */
  readonly show: (url: string) => void;
  readonly signal: AbortSignal;
}

/** What the server exchanges for a token. */
export interface Proof {
  readonly idToken?: string;
  readonly code?: {
    readonly provider: string;
    readonly code: string;
    readonly codeVerifier: string;
    readonly redirectUri: string;
  };
  readonly nonce?: string;
}

export async function logInWithBrowser(provider: Provider, login: BrowserLogin): Promise<Proof> {
  const { authorizationEndpoint } = provider.metadata;
  if (authorizationEndpoint === undefined) throw failed(`"${provider.name}" does not offer logins in a browser`);
  const secret = (): string => Buffer.from(login.randomSecret(32)).toString('base64url');
  const [codeVerifier, state, nonce] = [secret(), secret(), secret()];
  const listener = await LoopbackListener.open(login.clock);
  try {
    const { redirectUri } = listener;
    const url = new URL(authorizationEndpoint);
    const query = {
      response_type: 'code',
      client_id: provider.clientId,
      redirect_uri: redirectUri,
      scope: provider.scopes.join(' '),
      state,
      nonce,
      code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    login.show(url.href);
    const code = await listener.answer((answer) => codeIn(answer, { state, provider }), login.signal);
    return await exchanged(provider, login, { code, codeVerifier, redirectUri, nonce });
  } finally {
    await listener.close();
  }
}

/** Throws when the answer is not to this login, or not of this provider (RFC 9207). */
function codeIn(
  answer: URLSearchParams,
  { state, provider }: { readonly state: string; readonly provider: Provider },
): string {
  const only = (name: string): string | undefined => {
    const [value, second] = answer.getAll(name);
    if (second !== undefined) throw failed(`the answer of "${provider.name}" has two values of ${name}`);
    return value;
  };
  if (only('state') !== state) throw failed('the answer in the browser is not to this login; try again');
  const { issuer, answersWithIssuer } = provider.metadata;
  const from = only('iss');
  if (from === undefined ? answersWithIssuer : from !== issuer)
    throw failed(`the answer in the browser is not of "${provider.name}"; try again`);
  if (only('error') !== undefined)
    throw failed(`"${provider.name}" refuses the login: ${reasonIn(Object.fromEntries(answer))}`);
  const code = only('code');
  if (code === undefined) throw failed(`the answer of "${provider.name}" has no code`);
  return code;
}

interface Code {
  readonly code: string;
  readonly codeVerifier: string;
  readonly redirectUri: string;
  readonly nonce: string;
}

async function exchanged(
  provider: Provider,
  web: Web,
  { code, codeVerifier, redirectUri, nonce }: Code,
): Promise<Proof> {
  if (provider.exchange === 'server')
    return { code: { provider: provider.name, code, codeVerifier, redirectUri }, nonce };
  const { json } = await askProvider(web, provider, {
    endpoint: provider.metadata.tokenEndpoint,
    form: {
      grant_type: 'authorization_code',
      code,
      code_verifier: codeVerifier,
      redirect_uri: redirectUri,
      client_id: provider.clientId,
    },
  });
  if (typeof json['id_token'] === 'string') return { idToken: json['id_token'], nonce };
  throw failed(`"${provider.name}" gives no ID token: ${reasonIn(json)}`);
}
