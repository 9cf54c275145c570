// A store whose secrets are encrypted: everything above it sees plain records, the store below it never does. It
// decides nothing, and passes on what has no secrets untouched.

import { Unopenable } from '../../base/sealed.ts';
import { decodeRecord } from '../../core/state/codec.ts';
import { prefixOf } from '../../core/state/keys.ts';
import {
  type CommitResult,
  type Condition,
  type Entry,
  type Key,
  type Listed,
  type ListOptions,
  type Revision,
  type Store,
  StoreError,
  type WatchEvent,
  type Write,
} from '../../store/store.ts';
import type { DataKeys } from './data-keys.ts';
import { keyIdOf } from './envelope.ts';
import { mustBeSealed, openRow, sealedOf, sealRow } from './sealed-rows.ts';

export class SealedStore implements Store {
  readonly exclusive: boolean;
  readonly pageEntries?: number;
  readonly #inner: Store;
  readonly #dataKeys: DataKeys;
  readonly #plain = new Set<Key>();

  constructor(inner: Store, dataKeys: DataKeys) {
    this.#inner = inner;
    this.#dataKeys = dataKeys;
    this.exclusive = inner.exclusive === true;
    if (inner.pageEntries !== undefined) this.pageEntries = inner.pageEntries;
  }

  /** Keys that were read with secrets in plain text: written before there was a master key, or by a server without. */
  get plain(): ReadonlySet<Key> {
    return this.#plain;
  }

  async get(key: Key): Promise<Entry | null> {
    const entry = await this.#inner.get(key);
    return entry && { ...entry, value: await this.#opened(key, entry.value) };
  }

  async list(prefix: string, options?: ListOptions): Promise<Listed> {
    const listed = await this.#inner.list(prefix, options);
    return { ...listed, entries: await this.#openedAll(listed.entries) };
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult> {
    return this.#inner.commit(
      conditions,
      writes.map((write) => this.#sealed(write)),
    );
  }

  async *watch(prefix: string, after: Revision, signal: AbortSignal): AsyncIterable<readonly WatchEvent[]> {
    for await (const batch of this.#inner.watch(prefix, after, signal)) yield await this.#openedAll(batch);
  }

  compact(before: Revision): Promise<void> {
    return this.#inner.compact(before);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #sealed(write: Write): Write {
    const { key, value } = write;
    if (value === null || !mustBeSealed(key, value)) return write;
    return { key, value: sealRow(key, value, this.#dataKeys) };
  }

  /** The same array when nothing in it is encrypted. */
  async #openedAll<Row extends { readonly key: Key; readonly value: Uint8Array | null }>(rows: Row[]): Promise<Row[]>;
  async #openedAll<Row extends { readonly key: Key; readonly value: Uint8Array | null }>(
    rows: readonly Row[],
  ): Promise<readonly Row[]>;
  async #openedAll<Row extends { readonly key: Key; readonly value: Uint8Array | null }>(
    rows: readonly Row[],
  ): Promise<readonly Row[]> {
    let opened: Row[] | undefined;
    for (const [at, row] of rows.entries()) {
      if (row.value === null) {
        this.#plain.delete(row.key);
        continue;
      }
      const value = this.#isPlain(row.key, row.value) ? row.value : await this.#opened(row.key, row.value);
      if (value === row.value) continue;
      opened ??= [...rows];
      opened[at] = { ...row, value };
    }
    return opened ?? rows;
  }

  /** Whether there is nothing to open: most rows, which should cost no promise. */
  #isPlain(key: Key, stored: Uint8Array): boolean {
    if (key.startsWith(dataKeyPrefix)) this.#learn(key, stored);
    if (told(() => sealedOf(key, stored)) !== undefined) return false;
    if (mustBeSealed(key, stored)) this.#plain.add(key);
    else if (this.#plain.size > 0) this.#plain.delete(key);
    return true;
  }

  async #opened(key: Key, stored: Uint8Array): Promise<Uint8Array> {
    const sealed = told(() => sealedOf(key, stored));
    if (sealed === undefined) return stored;
    this.#plain.delete(key);
    if (!this.#dataKeys.knows(keyIdOf(sealed))) await this.#learnAll();
    return told(() => openRow({ key, stored, sealed }, this.#dataKeys));
  }

  /** Another server has made a data key. */
  async #learnAll(): Promise<void> {
    const { entries } = await this.#inner.list(dataKeyPrefix);
    for (const { key, value } of entries) this.#learn(key, value);
  }

  #learn(key: Key, stored: Uint8Array): void {
    const record = decodeRecord(key, stored);
    if (record.kind === 'dataKey') told(() => this.#dataKeys.learn(record));
  }
}

const dataKeyPrefix = prefixOf('dataKey');

/** An encrypted record that does not open is damage to the store. */
function told<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof Unopenable) throw new StoreError('Corrupt', error.message, { cause: error });
    throw error;
  }
}
