// What every command is given of the world. No command may reach past it: tests hand in a false one.

import type { Clock } from '../base/clock.ts';
import type { FetchLike } from '../api/user-client.ts';

/** Standard output or error: where it goes, and what it is shown on. */
export interface Output {
  write(data: string | Uint8Array): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  /** Whether what was written waits for a slow reader, and how to wait with it. */
  readonly writableNeedDrain?: boolean;
  once?(event: 'drain', listener: () => void): unknown;
  on?(event: 'resize', listener: () => void): unknown;
  off?(event: 'resize', listener: () => void): unknown;
}

export interface Input extends AsyncIterable<string | Uint8Array> {
  readonly isTTY?: boolean;
  /** Keys as they are typed, instead of edited lines. */
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
  /** Runs a program on the user's terminal to its end; its exit code. Throws when it cannot be started. */
  readonly runProgram: (program: string, words: readonly string[]) => Promise<number>;
  /** How this program is called again: the program and its first arguments. */
  readonly self: readonly string[];
  readonly version: string;
  /** Aborts at Ctrl-C. Until it is asked for, Ctrl-C simply ends the process. */
  readonly interruption: () => AbortSignal;
}
