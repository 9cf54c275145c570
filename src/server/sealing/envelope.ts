// Authenticated encryption of one value under a key: AES-256-GCM. The key of a value is derived from the parent key and
// 32 random bytes, so a parent key encrypts any number of values: a random nonce under the parent key itself would allow
// 2^32 (NIST SP 800-38D, 8.3), and no server can count what several servers encrypt. The text never contains a key.
//
//   sealed1.<id of the parent key, 16 hex digits>.<base64url of salt (32), nonce (12), ciphertext, tag (16)>

import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { isSealed, type Place, type Sealed, Unopenable } from '../../base/sealed.ts';

/** A key that other keys or values are encrypted under. */
export interface ParentKey {
  /** Derived from the key: it also tells a wrong key from the right one. */
  readonly id: string;
  readonly bytes: Uint8Array;
}

export const keyBytes = 32;
const saltBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const cipher = 'aes-256-gcm';

/** `use` keeps the ids of keys for different purposes apart. */
export function parentKey(bytes: Uint8Array, use: 'master' | 'data'): ParentKey {
  const digest = createHmac('sha256', bytes).update(`berth ${use} key id 1`).digest('hex');
  return { id: digest.slice(0, 16), bytes };
}

/** The id of the key that a text was sealed under. */
export function keyIdOf(sealed: Sealed): string {
  return sealed.slice(8, 24);
}

/** `random`: `saltBytes + nonceBytes` unpredictable bytes, used once. */
export function seal(
  { key, place, random }: { readonly key: ParentKey; readonly place: Place; readonly random: Uint8Array },
  plain: Uint8Array,
): Sealed {
  const [salt, nonce] = [random.subarray(0, saltBytes), random.subarray(saltBytes)];
  const sealing = createCipheriv(cipher, valueKey(key, salt), nonce, { authTagLength: tagBytes });
  sealing.setAAD(associatedData(key, place));
  const body = Buffer.concat([random, sealing.update(plain), sealing.final(), sealing.getAuthTag()]);
  const text = `sealed1.${key.id}.${body.toString('base64url')}`;
  return text as Sealed; // the codec: just made in this form
}

export const randomBytesPerValue = saltBytes + nonceBytes;

/** Nothing of a value is returned before all of it was verified. Throws `Unopenable`. */
export function open({ key, place }: { readonly key: ParentKey; readonly place: Place }, sealed: Sealed): Buffer {
  const body = Buffer.from(sealed.slice(25), 'base64url');
  if (!isSealed(sealed) || body.byteLength < saltBytes + nonceBytes + tagBytes) throw damaged(place);
  const salt = body.subarray(0, saltBytes);
  const nonce = body.subarray(saltBytes, saltBytes + nonceBytes);
  const opening = createDecipheriv(cipher, valueKey(key, salt), nonce, { authTagLength: tagBytes });
  opening.setAAD(associatedData(key, place));
  opening.setAuthTag(body.subarray(-tagBytes));
  const plain = opening.update(body.subarray(saltBytes + nonceBytes, -tagBytes));
  try {
    return Buffer.concat([plain, opening.final()]);
  } catch {
    throw damaged(place);
  }
}

function valueKey(key: ParentKey, salt: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key.bytes, salt, 'berth value key 1', keyBytes));
}

function associatedData(key: ParentKey, { kind, project, id, field }: Place): Buffer {
  return Buffer.from(JSON.stringify(['berth sealed 1', key.id, kind, project, id, field]));
}

function damaged({ kind, project, id, field }: Place): Unopenable {
  const whose = `${field} of ${kind} "${project === '' ? id : `${project}/${id}`}"`;
  return new Unopenable(`the encrypted ${whose} was changed or moved: it does not pass its check`);
}
