// Master keys: the first encrypts data keys, the others only decrypt those that were encrypted before a rotation. They
// come from a file or a command and are never written to the store.

import type { Place, Sealed } from '../../base/sealed.ts';
import { keyBytes, keyIdOf, open, type ParentKey, parentKey, seal } from './envelope.ts';

/** An unusable text of master keys; the message never repeats it. */
export class BadMasterKey extends Error {
  override name = 'BadMasterKey';
}

export class MasterKeys {
  readonly current: ParentKey;
  readonly #byId: ReadonlyMap<string, ParentKey>;

  constructor(current: ParentKey, older: readonly ParentKey[] = []) {
    this.current = current;
    this.#byId = new Map([current, ...older].map((key) => [key.id, key]));
  }

  get ids(): readonly string[] {
    return [...this.#byId.keys()];
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** The data key in `wrapped`; undefined: its master key is not among these. Throws `Unopenable`. */
  unwrap(id: string, wrapped: Sealed): Buffer | undefined {
    const key = this.#byId.get(keyIdOf(wrapped));
    return key && open({ key, place: placeOf(id) }, wrapped);
  }

  wrap(dataKey: ParentKey, random: Uint8Array): Sealed {
    return seal({ key: this.current, place: placeOf(dataKey.id), random }, dataKey.bytes);
  }
}

function placeOf(id: string): Place {
  return { kind: 'dataKey', project: '', id, field: 'wrapped' };
}

/**
 * One key a line: 32 bytes in base64, base64url or hex; the first is the current one. Empty lines and lines that begin
 * with `#` are skipped. Throws `BadMasterKey`.
 */
export function parseMasterKeys(text: string): MasterKeys {
  const keys: ParentKey[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const word = line.trim();
    if (word === '' || word.startsWith('#')) continue;
    const bytes = bytesOf(word);
    if (!bytes)
      throw new BadMasterKey(`line ${index + 1} is not a key: write 32 bytes as 44 characters of base64, or 64 of hex`);
    const weak = new Set(bytes).size < 8; // by chance once in 2^170
    if (weak) throw new BadMasterKey(`line ${index + 1} is not a random key: make one with "openssl rand -base64 32"`);
    keys.push(parentKey(bytes, 'master'));
  }
  const [current, ...older] = keys;
  if (!current) throw new BadMasterKey('there is no key: make one with "openssl rand -base64 32"');
  return new MasterKeys(current, older);
}

function bytesOf(word: string): Buffer | undefined {
  if (/^[0-9a-fA-F]{64}$/.test(word)) return Buffer.from(word, 'hex');
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(word)) return undefined;
  const bytes = Buffer.from(word, 'base64');
  return bytes.byteLength === keyBytes ? bytes : undefined;
}
