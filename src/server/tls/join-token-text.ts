// The text of a join token. It names the authority of the fleet, so that a machine that has it needs no certificate file:
// berth_j_<id>_<secret>_<crc>[.<SHA-256 of the root, base64url>]

import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const form = /^(berth_j_([0-9A-Za-z]{10})_([0-9A-Za-z]{43}))_([0-9A-Za-z]{6})(?:\.[A-Za-z0-9_-]{43})?$/;

function base62(value: bigint, length: number): string {
  let text = '';
  for (let left = value; text.length < length; left /= 62n) text = (digits[Number(left % 62n)] ?? '') + text;
  return text;
}

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
}

/** `fingerprint`: of the root that servers' certificates are of; undefined: of an authority that machines trust anyway. */
export function makeJoinToken(
  randomSecret: (length: number) => Uint8Array,
  fingerprint: string | undefined,
): { readonly id: string; readonly hash: string; readonly text: string } {
  const id = base62(numberOf(randomSecret(8)), 10);
  const secret = base62(numberOf(randomSecret(32)), 43);
  const plain = `berth_j_${id}_${secret}`;
  const pin =
    fingerprint === undefined
      ? ''
      : `.${Buffer.from(fingerprint.replace(/^sha256:/, ''), 'hex').toString('base64url')}`;
  return { id, hash: hashOf(secret), text: `${plain}_${base62(BigInt(crc32(plain)), 6)}${pin}` };
}

/** Undefined: this is no join token, or not the whole of one. */
export function readJoinToken(text: string): { readonly id: string; readonly hash: string } | undefined {
  const [, plain, id, secret, crc] = form.exec(text) ?? [];
  if (plain === undefined || id === undefined || secret === undefined) return undefined;
  return crc === base62(BigInt(crc32(plain)), 6) ? { id, hash: hashOf(secret) } : undefined;
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
