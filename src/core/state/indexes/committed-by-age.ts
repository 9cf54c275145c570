// The committed resources of one kind, newest first, without a sort per query: for pages that show a part of a long list. The order of a kind is
// built by its first query, and maintained from then on.

import type { AnyResource, Kind, ResourceByKind } from '../../../api/resources/index.ts';
import type { Cache } from '../cache.ts';
import { kindOfKey } from '../keys.ts';
import type { Entry } from '../snapshot.ts';

interface Aged {
  readonly key: string;
  readonly id: string;
  readonly createdAtMs: number;
}

interface Order {
  /** Oldest first: new resources are appended. */
  readonly sorted: Aged[];
  readonly byKey: Map<string, Aged>;
}

class CommittedByAge {
  readonly #cache: Cache;
  readonly #byKind = new Map<string, Order>();

  constructor(cache: Cache) {
    this.#cache = cache;
    cache.onCommitted((key) => this.#note(key));
  }

  count(kind: Kind): number {
    return this.#orderOf(kind).sorted.length;
  }

  /** Starts at the `offset`-th newest. */
  *list<K extends Kind>(kind: K, offset = 0): Iterable<Entry<ResourceByKind[K]>> {
    const { sorted } = this.#orderOf(kind);
    for (let at = sorted.length - 1 - offset; at >= 0; at--) {
      const entry = this.#cache.committed(kind, sorted[at]?.key ?? '');
      if (entry) yield entry;
    }
  }

  #orderOf(kind: Kind): Order {
    let order = this.#byKind.get(kind);
    if (order === undefined) {
      const sorted = [...this.#cache.listCommitted(kind)].map(({ key, value }) => agedOf(key, value)).sort(byAge);
      order = { sorted, byKey: new Map(sorted.map((each) => [each.key, each])) };
      this.#byKind.set(kind, order);
    }
    return order;
  }

  #note(key: string): void {
    const kind = kindOfKey(key);
    const order = kind && this.#byKind.get(kind);
    if (!order) return;
    const before = order.byKey.get(key);
    const entry = this.#cache.committed(kind, key);
    const after = entry && agedOf(key, entry.value as AnyResource); // only resources have an order
    if (before?.id === after?.id) return;
    if (before) {
      order.sorted.splice(placeOf(before, order.sorted), 1);
      order.byKey.delete(key);
    }
    if (!after) return;
    order.sorted.splice(placeOf(after, order.sorted), 0, after);
    order.byKey.set(key, after);
  }
}

function agedOf(key: string, { metadata: { id, createdAtMs } }: AnyResource): Aged {
  return { key, id, createdAtMs };
}

function byAge(a: Aged, b: Aged): number {
  return a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** The position at which it is, or would be inserted. */
function placeOf(aged: Aged, sorted: readonly Aged[]): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const at = sorted[middle];
    if (at !== undefined && byAge(at, aged) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

const orders = new WeakMap<Cache, CommittedByAge>();

export function committedByAge(cache: Cache): CommittedByAge {
  let order = orders.get(cache);
  if (order === undefined) orders.set(cache, (order = new CommittedByAge(cache)));
  return order;
}
