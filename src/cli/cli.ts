// What every command is given of the world. No command may reach past it: tests hand in a false one.

import type { Clock } from '../base/clock.ts';
import type { FetchLike } from '../api/user-client.ts';

/** Standard output or error: where it goes, and what it is shown on. */
export interface Output {
  write(data: string | Uint8Array): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

export interface Cli {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly stdin: AsyncIterable<string | Uint8Array>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  readonly clock: Clock;
  readonly fetch: FetchLike;
  readonly version: string;
  /** Aborts at Ctrl-C. Until it is asked for, Ctrl-C simply ends the process. */
  readonly interruption: () => AbortSignal;
}
