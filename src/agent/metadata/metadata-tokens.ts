// Tokens of the metadata service: each says for which guest and until when it is good, and is signed, so nothing is kept of those that were
// given out. A token of one guest must never be good for another; an agent that was restarted accepts none from before.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';

export interface MetadataTokens {
  give(instanceId: string, lifetimeSeconds: number): string;
  good(instanceId: string, token: string): boolean;
}

/** EC2's: six hours. */
export const tokenLifetimeSecondsMax = 21_600;
const expiryDigits = 12; // of milliseconds since the agent's start, in base 36

export function createMetadataTokens({
  clock,
  randomSecret,
}: {
  readonly clock: Clock;
  readonly randomSecret: (length: number) => Buffer;
}): MetadataTokens {
  const secret = randomSecret(32);
  const sign = (instanceId: string, expiry: string): Buffer =>
    createHmac('sha256', secret).update(`${expiry}/${instanceId}`).digest();
  return {
    give(instanceId, lifetimeSeconds) {
      const expiresAtMs = Math.floor(clock.monotonicMs() + lifetimeSeconds * 1000);
      const expiry = expiresAtMs.toString(36).padStart(expiryDigits, '0');
      return `${expiry}${sign(instanceId, expiry).toString('base64url')}`;
    },
    good(instanceId, token) {
      const expiry = token.slice(0, expiryDigits);
      const expected = sign(instanceId, expiry);
      const given = Buffer.from(token.slice(expiryDigits), 'base64url');
      // The lengths are no secret; what is compared byte by byte is.
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false;
      return Number.parseInt(expiry, 36) > clock.monotonicMs();
    },
  };
}
