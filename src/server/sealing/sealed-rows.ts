// Which records are encrypted in the store, and how they stand there. Records that hold values of users are encrypted as
// a whole, so a field that is added later cannot be forgotten; of the store's own record only the secrets are, because
// commands read the rest without a key. It knows bytes only: records without secrets are copied, not read.
//
//   {"kind":"sealed","schemaVersion":2,"value":"sealed1.…"}
//
// The version is one that Berth without encryption refuses.

import { isSealed, type Place, type Sealed, type Sealer, Unopenable } from '../../base/sealed.ts';
import { isRecord } from '../../base/is-record.ts';
import { keys, kindOfKey, prefixOf } from '../../core/state/keys.ts';
import { mayHoldSecrets } from './may-hold-secrets.ts';

const head = Buffer.from('{"kind":"sealed","schemaVersion":2,"value":"');
const tail = Buffer.from('"}');

/** Whether the value has to be encrypted before it is stored. */
export function mustBeSealed(key: string, value: Uint8Array): boolean {
  return mayHoldSecrets(key, value) || key.startsWith(secretPrefix) || key === keys.authority || key === keys.cluster;
}

const secretPrefix = prefixOf('secretValues');

export function sealRow(key: string, value: Uint8Array, sealer: Sealer): Uint8Array {
  if (key === keys.cluster)
    return withSecrets(value, (text, field) =>
      isSealed(text) ? text : sealer.seal(Buffer.from(text), placeInCluster(field)),
    );
  return Buffer.concat([head, Buffer.from(sealer.seal(value, placeOf(key))), tail]);
}

/** The encrypted text of a row, one of them if it has several; undefined: the row is plain. Throws `Unopenable`. */
export function sealedOf(key: string, stored: Uint8Array): Sealed | undefined {
  if (key !== keys.cluster) return isSealedRow(stored) ? sealedIn(key, stored) : undefined;
  let found: Sealed | undefined;
  withSecrets(stored, (text) => {
    if (isSealed(text)) found = text;
    return text;
  });
  return found;
}

/** The value as it was before `sealRow`. Throws `Unopenable`. */
export function openRow(
  { key, stored, sealed }: { readonly key: string; readonly stored: Uint8Array; readonly sealed: Sealed },
  sealer: Sealer,
): Uint8Array {
  if (key !== keys.cluster) return sealer.open(sealed, placeOf(key));
  return withSecrets(stored, (text, field) =>
    isSealed(text) ? Buffer.from(sealer.open(text, placeInCluster(field))).toString() : text,
  );
}

function sealedIn(key: string, stored: Uint8Array): Sealed {
  const text = bufferOf(stored).toString('latin1', head.byteLength, stored.byteLength - tail.byteLength);
  if (!isSealed(text)) throw new Unopenable(`the encrypted record at ${key} is not in a form that this Berth knows`);
  return text;
}

/** Whether a record is encrypted as a whole. Most rows differ from an encrypted one in the tenth byte: the first letter of their kind. */
export function isSealedRow(stored: Uint8Array): boolean {
  return stored[9] === head[9] && bufferOf(stored).subarray(0, head.byteLength).equals(head);
}

/** A row that was copied to another key does not open. */
function placeOf(key: string): Place {
  const [, ...rest] = key.split('/');
  const project = rest.length > 1 ? (rest[0] ?? '') : '';
  return { kind: kindOfKey(key) ?? '', project, id: rest.at(-1) ?? '', field: 'record' };
}

/** Fields of the store's own record. */
const clusterSecrets = ['tokenSecret', 'operatorToken'] as const;

function placeInCluster(field: string): Place {
  return { kind: 'cluster', project: '', id: 'this', field };
}

/** The store's own record with each secret replaced; what is no record is for the codec to report. */
function withSecrets(stored: Uint8Array, replace: (text: string, field: string) => string): Uint8Array {
  let record: unknown;
  try {
    record = JSON.parse(bufferOf(stored).toString());
  } catch {
    return stored;
  }
  if (!isRecord(record)) return stored;
  const replaced = clusterSecrets.flatMap((field) => {
    const text = record[field];
    return typeof text === 'string' ? [[field, replace(text, field)] as const] : [];
  });
  return Buffer.from(JSON.stringify({ ...record, ...Object.fromEntries(replaced) }));
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
