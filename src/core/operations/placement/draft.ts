// Draft: the changes of one request, each key once, from which its Plan is made. Reads see what the request has changed so far.

import { assert } from '../../../base/assert.ts';
import { keyOf, keys } from '../../state/keys.ts';
import type { Change, Plan } from '../../state/plan.ts';
import type { AnyRecord, OutsideConsumer, PlacementName, Provider, RecordKind } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';

export class Draft {
  readonly snapshot: Snapshot;
  readonly #changes = new Map<string, Change>();

  constructor(snapshot: Snapshot) {
    this.snapshot = snapshot;
  }

  /** As the request leaves it. */
  provider(id: string): Provider {
    const key = keys.provider(id);
    const changed = this.#changes.get(key)?.value;
    const provider = changed?.kind === 'provider' ? changed : this.snapshot.get('provider', key)?.value;
    assert(provider, () => `there is no provider ${id}`);
    return provider;
  }

  setProvider(id: string, changed: Partial<Provider>): void {
    this.put({ ...this.provider(id), ...changed });
  }

  /** One generation more. */
  countOn(id: string): void {
    this.setProvider(id, { generation: this.provider(id).generation + 1 });
  }

  /** Rewrites a record as it is, so that of two Plans that depend on it only one commits. */
  touch(kind: 'provider' | 'placementName', key: string): void {
    const entry = this.snapshot.get(kind, key);
    if (entry && !this.#changes.has(key))
      this.#changes.set(key, { key, ifRevision: entry.revision, value: entry.value });
  }

  put(record: Provider | PlacementName | OutsideConsumer): void {
    this.#set(record.kind, keyOf(record), record);
  }

  /** Of an allocation, whose key the caller knows. */
  putAt(key: string, record: AnyRecord): void {
    this.#set(record.kind, key, record);
  }

  remove(kind: RecordKind, key: string): void {
    const revision = this.snapshot.get(kind, key)?.revision;
    if (revision !== undefined) this.#changes.set(key, { key, ifRevision: revision, value: null });
    else this.#changes.delete(key);
  }

  plan(): Plan {
    return { changes: [...this.#changes.values()] };
  }

  #set(kind: RecordKind, key: string, value: AnyRecord): void {
    this.#changes.set(key, { key, ifRevision: this.snapshot.get(kind, key)?.revision ?? 0, value });
  }
}
