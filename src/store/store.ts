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

/** `key` is the first condition, in the order given, that did not hold. */
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
  /** Nobody looks at the values any more: their memory may be given back at once. For who lists much; missing where it is of no use. */
  release?(): void;
}

export interface Store {
  /** No other process can have it open at the same time. */
  readonly exclusive?: boolean;
  /** Where a page costs much whatever its size: who lists everything should ask for so many entries at a time, not for fewer. */
  readonly pageEntries?: number;
  get(key: Key): Promise<Entry | null>;
  /** Entries whose key starts with `prefix`, in byte order of the keys; `revision` is the state they were read at. */
  list(prefix: string, options?: ListOptions): Promise<Listed>;
  /**
   * All or nothing; durable when it resolves. A key may stand once in `writes`. A commit that changes nothing (no writes)
   * checks its conditions and answers the current revision. Throws `StoreError` when the outcome is a failure of the store
   * itself; then nothing was written, or (`outcome: 'unknown'`) nobody can say.
   */
  commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult>;
  /**
   * Every event under `prefix` with a revision above `after`, once, in order; a batch holds whole revisions. Ends when
   * `signal` aborts. Throws `Compacted` when events after `after` are gone, and `StoreError` when `after` lies in the future.
   */
  watch(prefix: string, after: Revision, signal: AbortSignal): AsyncIterable<readonly WatchEvent[]>;
  /** Forgets the history of revisions below `before`; current entries stay. Later watches from below fail `Compacted`. */
  compact(before: Revision): Promise<void>;
  /** Finishes what was begun, then releases files and connections. */
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
 * `Unavailable`: it may help to try again. `Denied`: the store is there and lets us not in (password, certificate, rights). `Full`: no room
 * left. `Corrupt`: what is stored is damaged. `Locked`: another process has it. `Invalid`: the request or the URL is wrong (it may name what
 * is not there, or is no store), or a newer Berth has made the store.
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
