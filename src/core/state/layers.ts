// Layers: the uncommitted changes of this process for a key, over the committed entry. It decides nothing.

import { kindOfKey } from './keys.ts';
import type { AnyRecord, RecordKind } from './records.ts';
import type { Entry } from './snapshot.ts';

export interface Assumed {
  readonly token: number;
  readonly value: AnyRecord | null;
}

/** Everything known under one key. */
export interface Layers {
  readonly key: string;
  /** Undefined for a key of a newer version. */
  readonly kind: RecordKind | undefined;
  committed: Entry | undefined;
  /** The newest last. */
  assumed: readonly Assumed[];
  /** Whether it can be found by its key. */
  kept: boolean;
}

/** Entries without an assumed change are dropped when they are this many plus the number of others. */
const bareMax = 32;

/**
 * Entries with an assumed change. An entry without one stays for a while and is then dropped with others, when the map
 * is compacted: see BriefMap. A caller that holds an entry needs no further lookup.
 */
export class LayersByKey {
  #byKey = new Map<string, Layers>();
  #bare = 0;

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): Layers | undefined {
    return this.#byKey.get(key);
  }

  *assumed(): Generator<Layers> {
    for (const layers of this.#byKey.values()) if (layers.assumed.length > 0) yield layers;
  }

  /** Adds an assumed change on top. */
  push(layers: Layers, assumed: Assumed): void {
    const { key, assumed: before, kept, committed } = layers;
    layers.assumed = before.length > 0 ? [...before, assumed] : [assumed];
    if (before.length > 0) return;
    if (kept) this.#bare -= 1;
    if (kept && committed) return;
    if (kept) this.#byKey.delete(key); // a key that is added again is last
    this.#byKey.set(key, layers);
    layers.kept = true;
  }

  /** Removes the change when it commits or fails. Returns false when no change has this token. */
  take(layers: Layers, token: number): boolean {
    const left = layers.assumed.length === 1 ? nothing : layers.assumed.filter((each) => each.token !== token);
    if (left.length === layers.assumed.length || (left === nothing && layers.assumed[0]?.token !== token)) return false;
    layers.assumed = left;
    if (left.length > 0) return true;
    this.#bare += 1;
    if (this.#bare === this.#byKey.size || 2 * this.#bare > bareMax + this.#byKey.size) this.#dropBare();
    return true;
  }

  #dropBare(): void {
    const left = new Map<string, Layers>();
    for (const layers of this.#byKey.values()) {
      if (layers.assumed.length > 0) left.set(layers.key, layers);
      else layers.kept = false;
    }
    this.#byKey = left;
    this.#bare = 0;
  }
}

export function layersOf(key: string, committed: Entry | undefined): Layers {
  return { key, kind: kindOfKey(key), committed, assumed: nothing, kept: false };
}

const nothing: readonly Assumed[] = [];
