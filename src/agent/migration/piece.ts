// A piece of a moving file on its way: the SHA-256 of its bytes, then the bytes; or the digest alone, for zeros.

import { createHash } from 'node:crypto';
import { DriverError } from '../host/driver-error.ts';

const digestBytes = 32;

export function packPiece(bytes: Uint8Array): Uint8Array {
  const digest = createHash('sha256').update(bytes).digest();
  return isZero(bytes) ? digest : Buffer.concat([digest, bytes]);
}

/** `bytes` undefined: zeros. Throws `Internal` when they are not what was sent. */
export function unpackPiece(packed: Uint8Array, length: number): { readonly bytes?: Uint8Array } {
  const digest = packed.subarray(0, digestBytes);
  const sent = packed.subarray(digestBytes);
  const bytes = sent.length === 0 ? new Uint8Array(length) : sent;
  const arrived = createHash('sha256').update(bytes).digest();
  if (bytes.length !== length || Buffer.compare(arrived, digest) !== 0)
    throw new DriverError('Internal', `a piece of ${length} bytes did not arrive as it was sent`);
  return sent.length === 0 ? {} : { bytes };
}

function isZero(bytes: Uint8Array): boolean {
  const { buffer, byteOffset, length } = bytes;
  const whole = length - (length % 8);
  if (byteOffset % 8 === 0) {
    const words = new BigUint64Array(buffer, byteOffset, whole / 8);
    if (words.some((word) => word !== 0n)) return false;
    return bytes.subarray(whole).every((byte) => byte === 0);
  }
  return bytes.every((byte) => byte === 0);
}
