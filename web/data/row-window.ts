// RowWindow: the visible rows of a list, and the total number of rows. The list may have any length: only visible rows are read. A visible row
// changes at once; when rows are added or removed, the visible rows are read again.

import { fits, parseWords } from '../../src/api/lists/words.ts';
import type { AnyResource, Kind, ResourceByKind } from '../../src/api/resources/index.ts';
import { client } from './client.ts';
import { type Change, Followed, type Source, type Standing } from './followed.ts';
import { keyOf } from './live-list.ts';
import type { From } from './stream.ts';

export interface Rows<T> {
  /** Number of rows that match the filter. */
  readonly length: number;
  /** Undefined: the row is being read. */
  at(index: number): T | undefined;
  /** Sets the visible rows. */
  look(first: number, last: number): void;
  /** All rows that have been read. */
  readonly known: readonly T[];
  readonly revision: number;
  readonly standing: Standing;
}

const chunkSize = 100;
/** Minimum time between two refreshes after rows were added or removed. It grows so that reading takes at most a tenth of the time. */
const rereadMsMin = 300;
const shareOfTime = 0.1;

export class RowWindow<K extends Kind> implements Source {
  readonly kind: K;
  readonly followed = new Followed(this);
  readonly #words: string;
  readonly #chunks = new Map<number, ResourceByKind[K][]>();
  readonly #places = new Map<string, { readonly chunk: number; readonly at: number }>();
  readonly #reading = new Set<number>();
  /** Changes that arrived while a chunk was read, which the answer may not contain. */
  readonly #recent = new Map<string, ResourceByKind[K]>();
  #reads = 0;
  #looked = { first: 0, last: 0 };
  #total = 0;
  #newestMs = 0;
  #tookMs = 0;
  #rereading: ReturnType<typeof setTimeout> | undefined;
  #seen: Rows<ResourceByKind[K]>;

  constructor(kind: K, words: string) {
    this.kind = kind;
    this.#words = words;
    this.#seen = this.#now();
  }

  readonly seen = (): Rows<ResourceByKind[K]> => this.#seen;

  readonly #at = (index: number): ResourceByKind[K] | undefined =>
    this.#chunks.get(Math.floor(index / chunkSize))?.[index % chunkSize];

  readonly #look = (first: number, last: number): void => {
    this.#looked = { first, last };
    for (const chunk of this.#chunksLooked())
      if (!this.#chunks.has(chunk) && !this.#reading.has(chunk)) void this.#readChunk(chunk);
  };

  #chunksLooked(): readonly number[] {
    const first = Math.floor(this.#looked.first / chunkSize);
    const last = Math.floor(Math.max(this.#looked.last, this.#looked.first) / chunkSize);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  }

  async load(): Promise<From> {
    const startedMs = performance.now();
    const wanted = this.#chunksLooked();
    const first = wanted[0] ?? 0;
    const page = await this.#list({ offset: first * chunkSize, limit: wanted.length * chunkSize }, () => {
      this.#chunks.clear();
      this.#places.clear();
    });
    this.#tookMs = performance.now() - startedMs;
    return page;
  }

  async #list(
    { offset, limit }: { readonly offset: number; readonly limit: number },
    first?: () => void,
  ): Promise<From> {
    this.#reads += 1;
    try {
      const page = await client.list(this.kind, { ...this.#query, offset, limit });
      first?.();
      for (let at = 0; at < limit; at += chunkSize)
        this.#set((offset + at) / chunkSize, page.items.slice(at, at + chunkSize));
      this.#total = page.total ?? page.items.length;
      return page;
    } finally {
      this.#reads -= 1;
      if (this.#reads === 0) this.#recent.clear();
    }
  }

  get #query() {
    return { order: 'newest', ...(this.#words === '' ? {} : { words: this.#words }) } as const;
  }

  async #readChunk(chunk: number): Promise<void> {
    this.#reading.add(chunk);
    try {
      await this.#list({ offset: chunk * chunkSize, limit: chunkSize });
      this.followed.changed();
    } catch {
      // The stream reports that the server is unreachable; the chunk is read when it becomes visible again.
    } finally {
      this.#reading.delete(chunk);
    }
  }

  #set(chunk: number, items: readonly ResourceByKind[K][]): void {
    if (items.length === 0 && chunk > 0) return;
    this.#chunks.set(
      chunk,
      items.map((item) => {
        const recent = this.#recent.get(keyOf(item));
        return recent?.metadata.id === item.metadata.id && recent.metadata.revision > item.metadata.revision
          ? recent
          : item;
      }),
    );
    items.forEach((item, at) => this.#places.set(keyOf(item), { chunk, at }));
    if (chunk === 0) this.#newestMs = items[0]?.metadata.createdAtMs ?? 0;
  }

  apply(change: Change): void {
    const place = this.#places.get(keyOf(change.resource));
    if (change.type === 'delete') return this.#rereadSoon();
    const resource = change.resource as ResourceByKind[K]; // the stream hands out those of the kind
    if (this.#reads > 0) this.#recent.set(keyOf(resource), resource);
    const known = place && this.#chunks.get(place.chunk)?.[place.at];
    if (place && known?.metadata.id === resource.metadata.id) {
      if (known.metadata.revision < resource.metadata.revision)
        this.#chunks.get(place.chunk)?.splice(place.at, 1, resource);
      if (!this.#fits(resource)) this.#rereadSoon();
    } else if (this.#words === '' ? resource.metadata.createdAtMs >= this.#newestMs : this.#fits(resource))
      this.#rereadSoon();
  }

  #fits(resource: AnyResource): boolean {
    return fits(resource, parseWords(this.#words));
  }

  #rereadSoon(): void {
    this.#rereading ??= setTimeout(
      () => {
        void this.#reread();
      },
      Math.max(rereadMsMin, this.#tookMs / shareOfTime),
    );
  }

  async #reread(): Promise<void> {
    try {
      await this.load();
    } catch {
      // As for a chunk: the stream reports that the server is unreachable.
    }
    this.#rereading = undefined;
    this.followed.changed();
  }

  clear(): void {
    this.#chunks.clear();
    this.#places.clear();
    clearTimeout(this.#rereading);
    this.#rereading = undefined;
    this.#total = 0;
  }

  tell(): void {
    this.#seen = this.#now();
  }

  #now(): Rows<ResourceByKind[K]> {
    const { revision, standing } = this.followed;
    const known = [...this.#chunks].sort(([a], [b]) => a - b).flatMap(([, items]) => items);
    return { length: this.#total, at: this.#at, look: this.#look, known, revision, standing };
  }
}
