// Host tokens, which are derived from the secret of the fleet. Compared in constant time.

import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * `berth-host.<name>.<HMAC-SHA256 of the name, base64url>`, of the name's generation: the tokens of a removed host stay invalid when its
 * name is created again. Generation 0 is the form of earlier versions.
 */
export function hostTokenOf(secret: Uint8Array, host: string, generation: number): string {
  const text = generation === 0 ? `berth host token 1\n${host}` : `berth host token 2\n${host}\n${generation}`;
  return `berth-host.${host}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** The host of this token; undefined: no host has it. */
export function hostOfToken(
  secret: Uint8Array,
  token: string,
  generationOf: (host: string) => number,
): string | undefined {
  const host = /^berth-host\.([a-z0-9-]{1,63})\./.exec(token)?.[1];
  return host !== undefined && equal(token, hostTokenOf(secret, host, generationOf(host))) ? host : undefined;
}

/** In constant time for its length, which is no secret. */
function equal(given: string, known: string): boolean {
  return given.length === known.length && timingSafeEqual(Buffer.from(given, 'latin1'), Buffer.from(known, 'latin1'));
}
