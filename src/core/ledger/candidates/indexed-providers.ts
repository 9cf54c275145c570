// Indexed providers: the providers of the fleet as trees, for searches of allocation candidates. A tree is made when it is first
// looked at and made again after one of its records changed; claims change nothing here, as what is used is read where it is kept.

import type { CandidateIndex, CandidateProvider } from '../candidate-question.ts';
import { aggregatesIn } from '../pool-aggregate.ts';
import { keys } from '../../state/keys.ts';
import type { Inventory, Provider } from '../../state/records.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../../state/snapshot.ts';

export const candidateIndexOf = defineView((snapshot) => new IndexedProviders(snapshot));

class IndexedProviders implements View, CandidateIndex {
  readonly #snapshot: Snapshot;
  /** As when they last changed: generations are read from the snapshot. */
  readonly #records = new Map<string, Provider>();
  readonly #children = new Map<string, Set<string>>();
  readonly #sharing = new Set<string>();
  readonly #roots = new Set<string>();
  /** In the order of `#roots`; made again when that changes. */
  #rootList: readonly string[] | undefined;
  readonly #trees = new Map<string, readonly CandidateProvider[]>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    const records = [...snapshot.list('provider')].map(({ value }) => value);
    // The same order after every start.
    records.sort((a, b) => (a.id < b.id ? -1 : 1));
    for (const record of records) this.#add(record);
  }

  roots(): readonly string[] {
    return (this.#rootList ??= [...this.#roots]);
  }

  tree(root: string): readonly CandidateProvider[] {
    const known = this.#trees.get(root);
    if (known) return known;
    if (!this.#roots.has(root)) return none;
    const ids = new Set([root]);
    for (const id of ids) for (const child of this.#children.get(id) ?? []) ids.add(child);
    const tree = [...ids].flatMap((id) => {
      const record = this.#records.get(id);
      return record ? [new IndexedProvider(this.#snapshot, { record, root, pool: this.#poolOf(record) })] : [];
    });
    this.#trees.set(root, tree);
    return tree;
  }

  provider(id: string): CandidateProvider | undefined {
    return this.#records.has(id) ? this.tree(this.#rootOf(id)).find((provider) => provider.id === id) : undefined;
  }

  sharing(): Iterable<string> {
    return this.#sharing;
  }

  nested(): boolean {
    return this.#roots.size < this.#records.size;
  }

  apply({ kind, before, after, onlyHeld }: RecordChange): void {
    if (onlyHeld) return;
    if (kind === 'host') {
      const host = after ?? before;
      const pool = (record: typeof host): string | undefined =>
        record?.kind === 'host' ? record.spec.pool : undefined;
      if (host?.kind !== 'host' || pool(before) === pool(after)) return;
      for (const { value } of this.#snapshot.providersOfHost(host.metadata.name)) this.#trees.delete(value.id);
    }
    if (kind !== 'provider') return;
    if (before?.kind === 'provider') this.#remove(before);
    if (after?.kind === 'provider') this.#add(after);
  }

  #add(record: Provider): void {
    const { id, parent, traits } = record;
    this.#records.set(id, record);
    if (parent !== null) put(this.#children, parent, id);
    if (traits.includes('MISC_SHARES_VIA_AGGREGATE')) this.#sharing.add(id);
    this.#markRoot(id);
    for (const child of this.#children.get(id) ?? []) this.#markRoot(child);
    this.#trees.delete(this.#rootOf(id));
  }

  #remove({ id, parent }: Provider): void {
    this.#trees.delete(this.#rootOf(id));
    this.#records.delete(id);
    this.#sharing.delete(id);
    const siblings = parent === null ? undefined : this.#children.get(parent);
    if (siblings?.delete(id) && siblings.size === 0) this.#children.delete(parent ?? '');
    this.#markRoot(id);
    for (const child of this.#children.get(id) ?? []) this.#markRoot(child);
  }

  /** A provider whose parent is gone counts as a root. */
  #markRoot(id: string): void {
    const record = this.#records.get(id);
    const isRoot = record !== undefined && (record.parent === null || !this.#records.has(record.parent));
    if (isRoot === this.#roots.has(id)) return;
    if (isRoot) this.#roots.add(id);
    else this.#roots.delete(id);
    this.#trees.delete(id);
    this.#rootList = undefined;
  }

  #rootOf(id: string): string {
    let at = id;
    for (let parent = this.#parentOf(at); parent !== null && parent !== id; parent = this.#parentOf(at)) at = parent;
    return at;
  }

  #parentOf(id: string): string | null {
    const parent = this.#records.get(id)?.parent ?? null;
    return parent !== null && this.#records.has(parent) ? parent : null;
  }

  #poolOf({ host }: Provider): string | undefined {
    return this.#snapshot.get('host', keys.host(host))?.value.spec.pool;
  }
}

interface Indexed {
  readonly record: Provider;
  readonly root: string;
  readonly pool: string | undefined;
}

class IndexedProvider implements CandidateProvider {
  readonly id: string;
  readonly parent: string | null;
  readonly root: string;
  readonly inventories: Readonly<Record<string, Inventory>>;
  readonly traits: readonly string[];
  readonly aggregates: readonly string[];
  readonly #snapshot: Snapshot;

  constructor(snapshot: Snapshot, { record, root, pool }: Indexed) {
    this.#snapshot = snapshot;
    this.id = record.id;
    this.parent = record.id === root ? null : record.parent;
    this.root = root;
    this.inventories = record.inventories;
    this.traits = record.traits;
    this.aggregates = aggregatesIn(pool, record.aggregates);
  }

  get generation(): number {
    return this.#snapshot.get('provider', keys.provider(this.id))?.value.generation ?? 0;
  }

  get used(): ReadonlyMap<string, number> {
    return this.#snapshot.usedBy(this.id);
  }
}

const none: readonly CandidateProvider[] = [];

function put(sets: Map<string, Set<string>>, name: string, id: string): void {
  const known = sets.get(name);
  if (known) known.add(id);
  else sets.set(name, new Set([id]));
}
