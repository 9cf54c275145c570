// Which records are encrypted in the store, and how they stand there. Records that hold values of users are encrypted as
// a whole, so a field that is added later cannot be forgotten; of the store's own record only the secret is, because
// commands read the rest without a key. It knows bytes only: records without secrets are copied, not read.
//
//   {"kind":"sealed","schemaVersion":2,"value":"sealed1.…"}
//
// The version is one that Berth without encryption refuses.

import { isSealed, type Place, type Sealed, type Sealer, Unopenable } from '../../base/sealed.ts';
import { keys, kindOfKey } from '../../core/state/keys.ts';
import { mayHoldSecrets } from './may-hold-secrets.ts';

const head = Buffer.from('{"kind":"sealed","schemaVersion":2,"value":"');
const tail = Buffer.from('"}');

/** Whether the value has to be encrypted before it is stored. */
export function mustBeSealed(key: string, value: Uint8Array): boolean {
  return mayHoldSecrets(key, value) || key.startsWith(secretPrefix) || key === keys.cluster;
}

const secretPrefix = 'secrets/';

export function sealRow(key: string, value: Uint8Array, sealer: Sealer): Uint8Array {
  if (key === keys.cluster) {
    const secret = tokenSecretOf(parsed(value));
    if (secret === undefined || isSealed(secret)) return value;
    return withTokenSecret(value, sealer.seal(Buffer.from(secret), tokenPlace));
  }
  return Buffer.concat([head, Buffer.from(sealer.seal(value, placeOf(key))), tail]);
}

/** The encrypted text of a row; undefined: the row is plain. Throws `Unopenable`. */
export function sealedOf(key: string, stored: Uint8Array): Sealed | undefined {
  if (key === keys.cluster) {
    const secret = tokenSecretOf(parsed(stored)) ?? '';
    return isSealed(secret) ? secret : undefined;
  }
  return beginsWithHead(stored) ? sealedIn(key, stored) : undefined;
}

/** The value as it was before `sealRow`. Throws `Unopenable`. */
export function openRow(
  { key, stored, sealed }: { readonly key: string; readonly stored: Uint8Array; readonly sealed: Sealed },
  sealer: Sealer,
): Uint8Array {
  if (key !== keys.cluster) return sealer.open(sealed, placeOf(key));
  return withTokenSecret(stored, Buffer.from(sealer.open(sealed, tokenPlace)).toString());
}

function sealedIn(key: string, stored: Uint8Array): Sealed {
  const text = bufferOf(stored).toString('latin1', head.byteLength, stored.byteLength - tail.byteLength);
  if (!isSealed(text)) throw new Unopenable(`the encrypted record at ${key} is not in a form that this Berth knows`);
  return text;
}

/** Most rows differ from an encrypted one in the tenth byte: the first letter of their kind. */
function beginsWithHead(stored: Uint8Array): boolean {
  return stored[9] === head[9] && bufferOf(stored).subarray(0, head.byteLength).equals(head);
}

/** A row that was copied to another key does not open. */
function placeOf(key: string): Place {
  const [, ...rest] = key.split('/');
  const project = rest.length > 1 ? (rest[0] ?? '') : '';
  return { kind: kindOfKey(key) ?? '', project, id: rest.at(-1) ?? '', field: 'record' };
}

const tokenPlace: Place = { kind: 'cluster', project: '', id: 'this', field: 'tokenSecret' };

function parsed(value: Uint8Array): unknown {
  try {
    return JSON.parse(bufferOf(value).toString());
  } catch {
    return undefined; // the codec reports it
  }
}

function tokenSecretOf(record: unknown): string | undefined {
  if (typeof record !== 'object' || record === null || !('tokenSecret' in record)) return undefined;
  return typeof record.tokenSecret === 'string' ? record.tokenSecret : undefined;
}

function withTokenSecret(value: Uint8Array, tokenSecret: string): Uint8Array {
  const record: object = JSON.parse(bufferOf(value).toString());
  return Buffer.from(JSON.stringify({ ...record, tokenSecret }));
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
