// The messages between the store and its thread. Calls are answered in order.

import type { CommitResult, Entry, Key, Revision, StoreErrorCode, WatchEvent } from '../store.ts';
import type { RequestBytes } from './request-codec.ts';
import type { FileState } from './sqlite-writer.ts';

export interface ThreadInput {
  readonly path: string;
  readonly fullCheckBytesMax: number;
}

export type Call =
  | { readonly call: 'open' }
  | { readonly call: 'commit'; readonly requests: readonly RequestBytes[] }
  | { readonly call: 'get'; readonly key: Key }
  | {
      readonly call: 'list';
      readonly prefix: string;
      readonly start: string;
      readonly end: string;
      readonly limit: number;
    }
  | { readonly call: 'history'; readonly prefix: string; readonly after: Revision }
  | { readonly call: 'follow'; readonly before: Revision }
  | { readonly call: 'setCompacted'; readonly before: Revision }
  | { readonly call: 'forget'; readonly before: Revision; readonly count: number }
  | { readonly call: 'close' };

export type CallName = Call['call'];

export interface Answers {
  open: null;
  commit: {
    readonly results: readonly CommitResult[];
    readonly absent: readonly { readonly request: number; readonly key: Key }[];
  };
  get: Entry | null;
  /** See entries-codec.ts. */
  list: Uint8Array<ArrayBuffer>;
  history: { readonly events: WatchEvent[]; readonly through: Revision };
  follow: boolean;
  setCompacted: null;
  forget: boolean;
  close: null;
}

export interface Failure {
  readonly code: StoreErrorCode;
  readonly message: string;
  readonly outcome: 'none' | 'unknown';
  readonly cause: string;
}

/**
 * `before`: the state of the file when the call began, which may be newer than the known one after the file was opened
 * again.
 */
export type Reply =
  | { readonly type: 'done'; readonly before: FileState; readonly after: FileState; readonly answer: unknown }
  | { readonly type: 'failed'; readonly before: FileState; readonly after: FileState; readonly failure: Failure }
  | {
      readonly type: 'log';
      readonly level: 'info' | 'warn' | 'error';
      readonly message: string;
      readonly fields: Record<string, unknown>;
    };
