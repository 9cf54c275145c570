// Reads who may log in from the configuration. The libraries for ID tokens are loaded only when a provider or a rule is configured.

import type { Web } from '../../base/fetch-json.ts';
import type { Logger } from '../../base/log.ts';
import { minting } from '../http/identity/mint-token.ts';
import type { LoginParts } from './login-routes.ts';
import { type OidcConfig, readOidc } from './oidc-config.ts';

interface Machine extends Web {
  readonly log: Logger;
  readonly randomSecret: (length: number) => Uint8Array;
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
    onLoginFailed: (address, reason) => log.info('a login failed', { address, reason }),
  };
}
