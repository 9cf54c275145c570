// Signatures of the Standard Webhooks specification (standardwebhooks.com): HMAC-SHA256 over id, time and body.

import { createHmac } from 'node:crypto';

const prefix = 'whsec_';

/** The key of a secret: 24 to 64 bytes, base64, after `whsec_`. Undefined: it is none. */
export function signingKey(secret: string): Buffer | undefined {
  const text = secret.trim();
  if (!text.startsWith(prefix) || !/^[A-Za-z0-9+/]+={0,2}$/.test(text.slice(prefix.length))) return undefined;
  const key = Buffer.from(text.slice(prefix.length), 'base64');
  return key.length >= 24 && key.length <= 64 ? key : undefined;
}

/** One signature for each key, separated by a space. `timestamp`: seconds since 1970, of this attempt. */
export function signatureOf(
  keys: readonly Buffer[],
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: string },
): string {
  const signed = `${id}.${timestamp}.${body}`;
  return keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`).join(' ');
}
