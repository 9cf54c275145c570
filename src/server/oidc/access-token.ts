// Verifies an access token of a provider, a JSON Web Token after RFC 9068, for one resource of this server. A token for anything else that
// trusts the same provider is refused by its audience.

import { type Claims, claimsOf, type Expected, quoted, refused, verified } from './id-token.ts';

/** Throws `Unauthenticated` with the reason, and `Unavailable` when the keys of the issuer cannot be read. */
export async function verifyAccessToken(token: string, expected: Expected): Promise<Claims> {
  const { payload, protectedHeader } = await verified(token, { ...expected, requiredClaims: ['exp', 'iat', 'sub'] });
  const { typ } = protectedHeader;
  // RFC 9068 wants at+jwt; Keycloak and Entra say JWT.
  if (typ !== undefined && !/^(application\/)?(at\+)?jwt$/i.test(typ))
    throw refused(`its type is ${quoted(typ)}, not at+jwt`);
  const { typ: kind, events } = { typ: undefined, events: undefined, ...payload };
  // Of Keycloak: it marks its ID tokens and refresh tokens so.
  if (kind !== undefined && kind !== 'Bearer') throw refused(`its claim typ is ${quoted(kind)}, not Bearer`);
  if (events !== undefined) throw refused('it is a logout token, not an access token');
  return claimsOf(payload);
}
