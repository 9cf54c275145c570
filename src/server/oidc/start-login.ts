// Reads who may log in from the configuration. The libraries for ID tokens are loaded only when a provider or a rule is configured.

import type { Web } from '../../base/fetch-json.ts';
import type { Logger } from '../../base/log.ts';
import { minting } from '../http/identity/mint-token.ts';
import type { AccessTokens, AccessTokensParts } from './access-tokens.ts';
import type { LoginParts } from './login-routes.ts';
import { type OidcConfig, readOidc } from './oidc-config.ts';

interface Machine extends Web {
  readonly log: Logger;
  readonly randomSecret: (length: number) => Uint8Array;
}

/** `audience`: the URL of the resource that takes tokens of providers; undefined: there is none. */
export async function accessTokensOf(
  audience: string | undefined,
  { login, ...parts }: { readonly login: LoginParts | undefined } & Omit<AccessTokensParts, 'login' | 'audience'>,
): Promise<AccessTokens | undefined> {
  if (audience === undefined || login === undefined) return undefined;
  const { AccessTokens: Exchange } = await import('./access-tokens.ts');
  return new Exchange({ ...parts, login, audience });
}

/** Undefined when nothing is configured. Throws `InvalidRequest` with the field. */
export async function readLogin(
  config: OidcConfig,
  { fetch, clock, log, randomSecret }: Machine,
): Promise<LoginParts | undefined> {
  const oidc = await readOidc(config);
  if (oidc === undefined) return undefined;
  const { Logins } = await import('./logins.ts');
  return {
    logins: new Logins(oidc, { web: { fetch, clock }, log }),
    mint: minting(randomSecret),
    randomState: () => Buffer.from(randomSecret(24)).toString('base64url'),
    onLoginFailed: (address, reason) => log.info('a login failed', { address, reason }),
  };
}
