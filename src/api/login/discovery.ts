// What an OpenID provider says of itself at its issuer (OpenID Connect Discovery 1.0). Server and command line read it. The issuer in
// the document must be the configured one, byte for byte: otherwise one provider could speak for another.

import { fetchJson, type Web } from '../../base/fetch-json.ts';
import { isRecord } from '../../base/is-record.ts';

export interface ProviderMetadata {
  readonly issuer: string;
  readonly jwksUri: string;
  readonly authorizationEndpoint?: string;
  readonly tokenEndpoint?: string;
  readonly deviceAuthorizationEndpoint?: string;
  /** The provider names itself in its answers to the browser (RFC 9207). */
  readonly answersWithIssuer: boolean;
}

/** Throws an `Error` that says why there is none. */
export async function discover(web: Web, issuer: string): Promise<ProviderMetadata> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const { status, json } = await fetchJson(web, url);
  if (status !== 200) throw new Error(`${url}: the answer has the status ${status}`);
  if (!isRecord(json)) throw new Error(`${url}: the answer is not an object`);
  if (json['issuer'] !== issuer) throw new Error(`${url}: the document is of another issuer, not of ${issuer}`);
  const at = (field: string): string | undefined => endpointOf(json, { field, issuer, url });
  const jwksUri = at('jwks_uri');
  if (jwksUri === undefined) throw new Error(`${url}: jwks_uri is missing`);
  const authorizationEndpoint = at('authorization_endpoint');
  const tokenEndpoint = at('token_endpoint');
  const deviceAuthorizationEndpoint = at('device_authorization_endpoint');
  return {
    issuer,
    jwksUri,
    ...(authorizationEndpoint === undefined ? {} : { authorizationEndpoint }),
    ...(tokenEndpoint === undefined ? {} : { tokenEndpoint }),
    ...(deviceAuthorizationEndpoint === undefined ? {} : { deviceAuthorizationEndpoint }),
    answersWithIssuer: json['authorization_response_iss_parameter_supported'] === true,
  };
}

function endpointOf(
  document: Readonly<Record<string, unknown>>,
  { field, issuer, url }: { readonly field: string; readonly issuer: string; readonly url: string },
): string | undefined {
  const value = document[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && isSafe(value, issuer)) return value;
  throw new Error(`${url}: ${field} is not an https: address`);
}

/** Of an issuer on this machine, plain HTTP to this machine is accepted: for tests and development. */
function isSafe(text: string, issuer: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url) && isLoopbackUrl(issuer));
}

/** Why this cannot be an issuer; undefined: it can. */
export function whyNoIssuer(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || url.search !== '' || url.hash !== '' || /[\s?#]/.test(text) || url.username || url.password)
    return 'it must be the URL of an issuer, without query: https://idp.example/realms/main';
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url))) return undefined;
  return 'it must begin with https:; http: is for an issuer on this machine, for tests';
}

function isLoopbackUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && isLoopback(url);
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}
