// What is committed of one project, without a look at all others: for lists. An index of a kind is made at the first question about it, and
// kept up from then on.

import type { Cache } from '../cache.ts';
import { kindOfKey, prefixOf } from '../keys.ts';
import type { RecordByKind, RecordKind } from '../records.ts';
import type { Entry } from '../snapshot.ts';

class CommittedByProject {
  readonly #cache: Cache;
  /** Keys by project. */
  readonly #byKind = new Map<RecordKind, Map<string, Set<string>>>();

  constructor(cache: Cache) {
    this.#cache = cache;
    cache.onCommitted((key) => this.#note(key));
  }

  /** Those that have something of the kind. */
  projects(kind: RecordKind): Iterable<string> {
    return this.#indexOf(kind).keys();
  }

  *list<K extends RecordKind>(kind: K, project: string): Iterable<Entry<RecordByKind[K]>> {
    for (const key of this.#indexOf(kind).get(project) ?? []) {
      const entry = this.#cache.committed(kind, key);
      if (entry) yield entry;
    }
  }

  #indexOf(kind: RecordKind): Map<string, Set<string>> {
    let index = this.#byKind.get(kind);
    if (index === undefined) {
      this.#byKind.set(kind, (index = new Map()));
      for (const { key } of this.#cache.listCommitted(kind)) add(index, kind, key);
    }
    return index;
  }

  #note(key: string): void {
    const kind = kindOfKey(key);
    if (kind === undefined) return;
    const index = this.#byKind.get(kind);
    if (index === undefined) return;
    if (this.#cache.committed(kind, key)) return add(index, kind, key);
    const project = projectIn(kind, key);
    const keys = index.get(project);
    keys?.delete(key);
    if (keys?.size === 0) index.delete(project);
  }
}

function add(index: Map<string, Set<string>>, kind: RecordKind, key: string): void {
  const project = projectIn(kind, key);
  const keys = index.get(project);
  if (keys) keys.add(key);
  else index.set(project, new Set([key]));
}

/** `instances/web/a` → `web`. */
function projectIn(kind: RecordKind, key: string): string {
  const begin = prefixOf(kind).length;
  return key.slice(begin, key.indexOf('/', begin));
}

const indexes = new WeakMap<Cache, CommittedByProject>();

/** Of kinds whose key has a project. */
export function committedByProject(cache: Cache): CommittedByProject {
  let index = indexes.get(cache);
  if (index === undefined) indexes.set(cache, (index = new CommittedByProject(cache)));
  return index;
}
