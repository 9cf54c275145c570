// The contract of a store: a durable, transactional, watchable map of keys to bytes. It knows no resource and decides
// nothing. Every backend passes conformance.ts.

/** Slash-separated, printable ASCII, at most 512 bytes: `instances/default/web-1`. */
export type Key = string;

/** 0 is the empty store. Grows by one per commit, in commit order, without gaps. */
export type Revision = number;

export interface Entry {
  readonly key: Key;
  readonly value: Uint8Array;
  /** The commit that last wrote this key. */
  readonly revision: Revision;
}

export interface Condition {
  readonly key: Key;
  /** The key must have been last written at this revision; 0: it must be absent. */
  readonly ifRevision: Revision;
}

export interface Write {
  readonly key: Key;
  /** null deletes; deleting an absent key is allowed and writes no event. */
  readonly value: Uint8Array | null;
}

/** `key`: the first condition, in the given order, that did not hold. */
export type CommitResult =
  | { readonly ok: true; readonly revision: Revision }
  | { readonly ok: false; readonly key: Key };

export interface WatchEvent {
  readonly key: Key;
  /** null: the key was deleted. */
  readonly value: Uint8Array | null;
  readonly revision: Revision;
}

export interface ListOptions {
  /** At most this many entries; default: all. */
  readonly limit?: number;
  /** Only keys after this one, in byte order. */
  readonly after?: Key;
}

export interface Listed {
  readonly entries: Entry[];
  readonly revision: Revision;
  /**
   * The values are not used any more: their memory may be freed immediately. For callers that list much; missing where
   * it has no effect.
   */
  release?(): void;
}

export interface Store {
  /** No other process can have it open at the same time. */
  readonly exclusive?: boolean;
  /**
   * Set where a page is expensive whatever its size: a caller that lists everything should request this many entries at
   * a time.
   */
  readonly pageEntries?: number;
  get(key: Key): Promise<Entry | null>;
  /** Entries whose key starts with `prefix`, in byte order of the keys; `revision`: the state they were read at. */
  list(prefix: string, options?: ListOptions): Promise<Listed>;
  /**
   * All or nothing; durable when it resolves. A key may occur once in `writes`. A commit without writes checks its
   * conditions and returns the current revision. Throws `StoreError` for a failure of the store itself; then nothing
   * was written, or (`outcome: 'unknown'`) that is not known.
   */
  commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult>;
  /**
   * Every event under `prefix` with a revision above `after`, once, in order; a batch contains whole revisions. Ends
   * when `signal` aborts. Throws `Compacted` when events after `after` are gone, and `StoreError` when `after` is in
   * the future.
   */
  watch(prefix: string, after: Revision, signal: AbortSignal): AsyncIterable<readonly WatchEvent[]>;
  /**
   * Forgets the history of revisions below `before`; current entries stay. Later watches from below fail with
   * `Compacted`.
   */
  compact(before: Revision): Promise<void>;
  /** Finishes work in progress, then releases files and connections. */
  close(): Promise<void>;
}

/** The watched history is gone: list again, and watch from the list's revision. */
export class Compacted extends Error {
  override name = 'Compacted';
  readonly before: Revision;
  constructor(before: Revision) {
    super(`history before revision ${before} has been compacted; list again`);
    this.before = before;
  }
}

/**
 * `Unavailable`: a retry may help. `Denied`: the store refuses access (password, certificate, rights). `Full`: no room
 * left. `Corrupt`: stored data is damaged. `Locked`: another process has it open. `Invalid`: the request or the URL is
 * wrong (it may name something missing, or something that is not a store), or a newer Berth created the store.
 */
export type StoreErrorCode = 'Unavailable' | 'Denied' | 'Full' | 'Corrupt' | 'Locked' | 'Invalid' | 'Closed';

/** A failure of the store itself. `outcome: 'unknown'` means that the commit may or may not have happened. */
export class StoreError extends Error {
  override name = 'StoreError';
  readonly code: StoreErrorCode;
  readonly outcome: 'none' | 'unknown';
  constructor(code: StoreErrorCode, message: string, options: { cause?: unknown; outcome?: 'none' | 'unknown' } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.outcome = options.outcome ?? 'none';
  }
}
