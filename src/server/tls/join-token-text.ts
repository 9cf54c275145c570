// The text of a join token. It names the authority of the fleet, so that a machine that has it needs no certificate file:
// berth_j_<id>_<secret>_<crc>[.<SHA-256 of the root, base64url>]

import { createHash } from 'node:crypto';
import { makeToken, parseToken, tokenBytes } from '../../api/token-text.ts';

/** `fingerprint`: of the root that servers' certificates are of; undefined: of an authority that machines trust anyway. */
export function makeJoinToken(
  randomSecret: (length: number) => Uint8Array,
  fingerprint: string | undefined,
): { readonly id: string; readonly hash: string; readonly text: string } {
  const { id, text } = makeToken('j', randomSecret(tokenBytes));
  const pin =
    fingerprint === undefined
      ? ''
      : `.${Buffer.from(fingerprint.replace(/^sha256:/, ''), 'hex').toString('base64url')}`;
  return { id, hash: hashOf(text), text: text + pin };
}

/** Undefined: this is no join token, or not the whole of one. */
export function readJoinToken(text: string): { readonly id: string; readonly hash: string } | undefined {
  const token = parseToken(text.replace(/\.[A-Za-z0-9_-]{43}$/, ''));
  return token?.kind === 'j' ? { id: token.id, hash: hashOf(token.text) } : undefined;
}

/** Of the secret in the text. */
function hashOf(text: string): string {
  return createHash('sha256')
    .update(text.split('_')[3] ?? '')
    .digest('hex');
}
