// LiveList: all resources of one kind that the user may see, the oldest first, kept as the server has them. Only for kinds of which a page
// needs all; the pages of long lists show a window of them: row-window.ts.

import type { Kind, ResourceByKind } from '../../src/api/resources/index.ts';
import { client } from './client.ts';
import { type Change, Followed, type Source, type Standing } from './followed.ts';
import type { From } from './stream.ts';

export type { Standing } from './followed.ts';

export interface Seen<T> {
  readonly items: readonly T[];
  /** Of the newest change that is in `items`. */
  readonly revision: number;
  readonly standing: Standing;
}

const pageSize = 5_000;

export class LiveList<K extends Kind> implements Source {
  readonly kind: K;
  readonly followed = new Followed(this);
  readonly #items = new Map<string, ResourceByKind[K]>();
  #isNew = false;
  #seen: Seen<ResourceByKind[K]> = { items: [], revision: 0, standing: { state: 'loading' } };

  constructor(kind: K) {
    this.kind = kind;
  }

  readonly seen = (): Seen<ResourceByKind[K]> => this.#seen;

  async load(signal: AbortSignal): Promise<From> {
    const found = new Map<string, ResourceByKind[K]>();
    let page = await client.list(this.kind, { limit: pageSize });
    const { revision, epoch } = page; // later pages may be newer: the watch repeats what they have already
    for (;;) {
      for (const item of page.items) found.set(keyOf(item), item);
      if (page.continue === undefined || signal.aborted) break;
      page = await client.list(this.kind, { limit: pageSize, continue: page.continue });
    }
    if (signal.aborted) throw new Error('stopped');
    this.#items.clear();
    // The oldest first, as later ones are added at the end: a list by age is then sorted already.
    const byAge = [...found].sort(([, a], [, b]) => a.metadata.createdAtMs - b.metadata.createdAtMs);
    for (const [key, item] of byAge) this.#items.set(key, item);
    this.#isNew = true;
    return { revision, epoch };
  }

  apply(change: Change): void {
    const key = keyOf(change.resource);
    if (change.type === 'delete') this.#items.delete(key);
    else {
      const resource = change.resource as ResourceByKind[K]; // the stream hands out those of the kind
      const known = this.#items.get(key);
      if (known !== undefined && known.metadata.revision >= resource.metadata.revision) return;
      this.#items.set(key, resource);
    }
    this.#isNew = true;
  }

  clear(): void {
    this.#items.clear();
    this.#isNew = true;
  }

  tell(): void {
    const { revision, standing } = this.followed;
    // What only says that nothing changed does not copy the list.
    this.#seen = { items: this.#isNew ? [...this.#items.values()] : this.#seen.items, revision, standing };
    this.#isNew = false;
  }
}

export function keyOf({
  metadata,
}: {
  readonly metadata: { readonly name: string; readonly project: string };
}): string {
  return `${metadata.project}/${metadata.name}`;
}

const lists = new Map<Kind, LiveList<Kind>>();

/** One for all pages. */
export function liveList<K extends Kind>(kind: K): LiveList<K> {
  let list = lists.get(kind);
  if (list === undefined) lists.set(kind, (list = new LiveList<Kind>(kind)));
  return list as unknown as LiveList<K>; // it is kept by its kind
}
