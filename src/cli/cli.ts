// The environment of every command. No command may use anything beyond it: tests replace it.

import type { Clock } from '../base/clock.ts';
import type { FetchLike } from '../api/client/user-client.ts';

/** Standard output or error, and the terminal behind it. */
export interface Output {
  write(data: string | Uint8Array): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  /** Whether written data waits for a slow reader, and how to wait with it. */
  readonly writableNeedDrain?: boolean;
  once?(event: 'drain', listener: () => void): unknown;
  on?(event: 'resize', listener: () => void): unknown;
  off?(event: 'resize', listener: () => void): unknown;
}

export interface Input extends AsyncIterable<string | Uint8Array> {
  readonly isTTY?: boolean;
  /** Delivers single keys instead of edited lines. */
  setRawMode?(on: boolean): unknown;
}

export interface Cli {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly stdin: Input;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  readonly clock: Clock;
  readonly fetch: FetchLike;
  /** Runs a program on the user's terminal and returns its exit code. Throws when it cannot be started. */
  readonly runProgram: (program: string, words: readonly string[]) => Promise<number>;
  /** The command that runs this program again: the program and its first arguments. */
  readonly self: readonly string[];
  readonly version: string;
  /** Aborts at Ctrl-C. Until this is called, Ctrl-C ends the process. */
  readonly interruption: () => AbortSignal;
}
