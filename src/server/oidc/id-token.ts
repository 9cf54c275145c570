// Verifies an ID token: signature by a key of its issuer, and every claim that jose leaves open. What it returns was signed by
// that issuer for us, a short while ago. It never accepts an access token; access-token.ts does.

import { decodeJwt, errors, type JWTPayload, jwtVerify, type JWTVerifyResult } from 'jose';
import { ApiError } from '../../api/errors.ts';
import type { Issuer } from './issuer.ts';

export type Claims = Readonly<JWTPayload> & { readonly iss: string; readonly sub: string; readonly exp: number };

const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];
const skewSeconds = 60;
export const ageSecondsMax = 3_600;
const charactersMax = 16_384;

export function refused(reason: string, cause?: unknown): ApiError {
  return new ApiError('Unauthenticated', `the token is refused: ${reason}`, { cause });
}

/** Issuer and audiences as the token says, before anything is verified. Throws `Unauthenticated`. */
export function unverified(token: string): { readonly issuer: string; readonly audiences: readonly string[] } {
  if (token.length > charactersMax) throw refused(`it is over ${charactersMax} characters`);
  try {
    const { iss, aud } = decodeJwt(token);
    if (typeof iss !== 'string') throw refused('it names no issuer');
    return { issuer: iss, audiences: typeof aud === 'string' ? [aud] : Array.isArray(aud) ? aud : [] };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw refused('it is not a signed JSON Web Token', error);
  }
}

export interface Expected {
  readonly issuer: Issuer;
  readonly audience: string;
  readonly nowMs: number;
}

/** Throws `Unauthenticated` with the reason, and `Unavailable` when the keys of the issuer cannot be read. */
export async function verifyIdToken(token: string, { issuer, audience, nowMs }: Expected): Promise<Claims> {
  const checks = { issuer, audience, nowMs, requiredClaims: ['exp', 'iat', 'sub'], maxTokenAge: ageSecondsMax };
  const { payload, protectedHeader } = await verified(token, checks);
  const { typ } = protectedHeader;
  // Access tokens have at+jwt (RFC 9068), logout tokens logout+jwt.
  if (typ !== undefined && !/^(application\/)?jwt$/i.test(typ)) throw refused(`its type is ${quoted(typ)}, not JWT`);
  const foreign = whyNotAnIdToken(payload);
  if (foreign !== undefined) throw refused(foreign);
  const { aud } = payload;
  const { azp } = { azp: undefined, ...payload };
  if (azp !== undefined && azp !== audience) throw refused('it was issued to another client (azp)');
  if (azp === undefined && Array.isArray(aud) && aud.length > 1)
    throw refused('it is for several audiences and does not say to whom it was issued (azp)');
  return claimsOf(payload);
}

/** Throws `Unauthenticated` when it does not say who it is, or until when. */
export function claimsOf(payload: JWTPayload): Claims {
  const { iss, sub, exp } = payload;
  if (typeof sub !== 'string' || !/^[\x21-\x7e][\x20-\x7e]{0,254}$/.test(sub))
    throw refused('its subject (sub) is not 1 to 255 printable characters');
  if (typeof iss !== 'string' || typeof exp !== 'number') throw refused('iss or exp is missing');
  return { ...payload, iss, sub, exp };
}

/** Access tokens that are not marked in their header: of Keycloak (`typ`), and of Entra (`scp`). Logout tokens have `events`. */
function whyNotAnIdToken(payload: JWTPayload): string | undefined {
  const { typ, scp, events } = { typ: undefined, scp: undefined, events: undefined, ...payload };
  if (typ !== undefined && typ !== 'ID') return `its claim typ is ${quoted(typ)}, not ID: it is not an ID token`;
  if (scp !== undefined) return 'it is an access token, not an ID token';
  return events === undefined ? undefined : 'it is a logout token, not an ID token';
}

interface Checks extends Expected {
  readonly requiredClaims: string[];
  readonly maxTokenAge?: number;
}

/** Signature, issuer, audience and times. Throws as `verifyIdToken` does. */
export async function verified(token: string, { issuer, nowMs, ...checks }: Checks): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, issuer.key, {
      ...checks,
      algorithms,
      issuer: issuer.url,
      clockTolerance: skewSeconds,
      currentDate: new Date(nowMs),
    });
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw refused(reasonOf(error), error);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired)
    return error.claim === 'iat' ? 'it was issued more than an hour ago' : 'it has expired';
  if (error instanceof errors.JWTClaimValidationFailed) return claimReason(error);
  if (error instanceof errors.JOSEAlgNotAllowed) return `its algorithm must be one of ${algorithms.join(', ')}`;
  if (error instanceof errors.JWKSNoMatchingKey) return 'its issuer has no such key';
  if (error instanceof errors.JWKSMultipleMatchingKeys) return 'it does not say which key of its issuer signed it';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature is wrong';
  return 'it is not a JSON Web Token that can be verified';
}

function claimReason({ claim, reason }: errors.JWTClaimValidationFailed): string {
  if (reason === 'missing') return `it has no claim ${claim}`;
  if (claim === 'aud') return 'it is for another audience (aud)';
  if (claim === 'iss') return 'it is of another issuer (iss)';
  if (claim === 'iat' || claim === 'nbf') return `it is of the future (${claim}): the clocks differ by over a minute`;
  return `its claim ${claim} is not valid`;
}

/** Text of a token in a message. */
export function quoted(value: unknown): string {
  const text = typeof value === 'string' ? value : typeof value;
  return `"${text.slice(0, 100).replace(/[^\x20-\x7e]/g, '?')}"`;
}
