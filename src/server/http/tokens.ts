// Tokens: one for operators, one for each host that can be made anew from the server's secret. Compared in constant time.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Principal } from '../../core/access/principal.ts';

export interface TokenSecrets {
  readonly operatorToken: string;
  /** At least 32 bytes; hosts' tokens are made from it. */
  readonly secret: Uint8Array;
}

/**
 * `berth-host.<name>.<HMAC-SHA256 of the name, base64url>`, of the name's generation: the tokens of a removed host stay invalid when its
 * name is created again. Generation 0 is the form of earlier versions.
 */
export function hostTokenOf(secret: Uint8Array, host: string, generation: number): string {
  const text = generation === 0 ? `berth host token 1\n${host}` : `berth host token 2\n${host}\n${generation}`;
  return `berth-host.${host}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** Who bears this Authorization header, or undefined. */
export function identityOf(
  secrets: TokenSecrets,
  authorization: string | undefined,
  generationOf: (host: string) => number,
): Principal | undefined {
  const token = /^Bearer ([A-Za-z0-9._~-]{1,512})$/i.exec(authorization ?? '')?.[1];
  if (token === undefined) return undefined;
  if (equal(token, secrets.operatorToken)) return { kind: 'admin' };
  const host = /^berth-host\.([a-z0-9-]{1,63})\./.exec(token)?.[1];
  if (host !== undefined && equal(token, hostTokenOf(secrets.secret, host, generationOf(host))))
    return { kind: 'host', host };
  return undefined;
}

/** In constant time for its length, which is no secret. */
function equal(given: string, known: string): boolean {
  return given.length === known.length && timingSafeEqual(Buffer.from(given, 'latin1'), Buffer.from(known, 'latin1'));
}
