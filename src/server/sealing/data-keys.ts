// The data keys of a store, as far as the master keys open them: values are sealed under the newest. Opened data keys
// are in memory only.

import { keyIdOf, open, type ParentKey, parentKey, randomBytesPerValue, seal } from './envelope.ts';
import { isSealed, type Place, type Sealed, type Sealer, Unopenable } from '../../base/sealed.ts';
import type { DataKey } from '../../core/state/records.ts';
import type { MasterKeys } from './master-keys.ts';

interface Known extends ParentKey {
  readonly createdAtMs: number;
}

export class DataKeys implements Sealer {
  readonly #randomSecret: (length: number) => Uint8Array;
  #masterKeys: MasterKeys;
  readonly #known = new Map<string, Known>();
  #newest: Known | undefined;

  constructor(masterKeys: MasterKeys, randomSecret: (length: number) => Uint8Array) {
    this.#masterKeys = masterKeys;
    this.#randomSecret = randomSecret;
  }

  get masterKeys(): MasterKeys {
    return this.#masterKeys;
  }

  /** Data keys that were opened before stay usable whatever the new master keys are. */
  useMasterKeys(masterKeys: MasterKeys): void {
    this.#masterKeys = masterKeys;
  }

  /** Answers false when none of the master keys opens it. Throws `Unopenable`. */
  learn({ id, wrapped, createdAtMs }: DataKey): boolean {
    if (this.#known.has(id)) return true;
    if (!isSealed(wrapped)) throw new Unopenable(`the data key ${id} is not in a form that this Berth knows`);
    const bytes = this.#masterKeys.unwrap(id, wrapped);
    if (!bytes) return false;
    if (parentKey(bytes, 'data').id !== id) throw new Unopenable(`the data key ${id} holds another key`);
    this.#add({ id, bytes, createdAtMs });
    return true;
  }

  /** A new data key for this store. Values are sealed under it once it is learned, which follows its commit. */
  make(nowMs: number): DataKey {
    const key = parentKey(this.#randomSecret(32), 'data');
    return this.#recordOf({ ...key, createdAtMs: nowMs });
  }

  /** `record` under the current master key; undefined: it is already, or its data key is not known here. */
  rewrapped(record: DataKey): DataKey | undefined {
    const known = this.#known.get(record.id);
    return known && record.masterKey !== this.#masterKeys.current.id ? this.#recordOf(known) : undefined;
  }

  knows(id: string): boolean {
    return this.#known.has(id);
  }

  seal(bytes: Uint8Array, place: Place): Sealed {
    const key = this.#newest;
    if (!key) throw new Unopenable('there is no data key to encrypt with');
    return seal({ key, place, random: this.#randomSecret(randomBytesPerValue) }, bytes);
  }

  open(sealed: Sealed, place: Place): Uint8Array {
    const key = this.#known.get(keyIdOf(sealed));
    if (!key) throw new Unopenable(`the data key ${keyIdOf(sealed)} is not in the store, or its master key is missing`);
    return open({ key, place }, sealed);
  }

  #add(key: Known): void {
    this.#known.set(key.id, key);
    if (!this.#newest || key.createdAtMs > this.#newest.createdAtMs) this.#newest = key;
  }

  #recordOf(key: Known): DataKey {
    const { id, createdAtMs } = key;
    const wrapped = this.#masterKeys.wrap(key, this.#randomSecret(randomBytesPerValue));
    return { kind: 'dataKey', id, masterKey: this.#masterKeys.current.id, wrapped, createdAtMs };
  }
}
