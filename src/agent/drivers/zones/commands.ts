// The only way in which the zones driver acts on the machine: it runs a program with arguments, never through a shell. A failure
// becomes an error that names what was attempted and what the program printed.

import { DriverError } from '../../host/driver-error.ts';
import type { ToolCall, ToolResult } from '../../host/run-tool.ts';

export type RunCommand = (call: ToolCall) => Promise<ToolResult>;

export interface Command {
  /** For the error: "cannot boot inst_...". */
  readonly what: string;
  readonly program: string;
  readonly arguments: readonly string[];
  /** Default 60 s: many times what any program takes, except copies. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const usualTimeoutMs = 60_000;
const wordsMax = 600;

/** Returns the output. Throws `DiskFull`, `Aborted` or `HypervisorFailed`. */
export async function command(run: RunCommand, call: Command): Promise<string> {
  const timeoutMs = call.timeoutMs ?? usualTimeoutMs;
  const result = await run({
    program: call.program,
    arguments: call.arguments,
    timeoutMs,
    ...(call.signal === undefined ? {} : { signal: call.signal }),
  });
  if (result.ok) return result.output;
  const { what, program } = call;
  switch (result.reason) {
    case 'missing':
      throw new DriverError(
        'HypervisorFailed',
        `${what}: ${program} is not installed; bhyve zones need illumos with the bhyve brand (OmniOS: pkg install brand/bhyve)`,
      );
    case 'aborted':
      throw new DriverError('Aborted', `${what}: it was given up`);
    case 'timeout':
      throw new DriverError('HypervisorFailed', `${what}: ${program} did not end within ${timeoutMs} ms`);
    case 'failed': {
      const words = lastWordsOf(result.output);
      // zfs(8) and dd(8) have one exit code for all failures; these are the messages of ENOSPC and EDQUOT.
      if (/out of space|No space left|quota exceeded/i.test(words))
        throw new DriverError('DiskFull', `${what}: ${words}; remove guests or images, or give the pool more disk`);
      throw new DriverError('HypervisorFailed', `${what}: ${program} says: ${words}`);
    }
  }
}

function lastWordsOf(output: string): string {
  return output.split('\n').filter(Boolean).slice(-5).join('; ').slice(-wordsMax);
}
