// Runs one short helper program to its end with explicit arguments, never through a shell, and ends it at a time limit.

import { execFile } from 'node:child_process';
import type { Clock } from '../../base/clock.ts';

export interface ToolCall {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly workingDirectory?: string;
  /** Besides what every tool has. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export type ToolResult =
  | { readonly ok: true; readonly output: string }
  | {
      readonly ok: false;
      readonly reason: 'missing' | 'timeout' | 'aborted' | 'failed';
      readonly exitCode?: number;
      /** The signal that ended it, where that was not ours. */
      readonly killedBy?: string;
      readonly output: string;
    };

/** Nothing of the agent's own environment reaches a child: it may hold tokens. */
export const toolEnvironment: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
};

export function runTool(clock: Clock, call: ToolCall): Promise<ToolResult> {
  return new Promise((resolve) => {
    if (call.signal?.aborted) return resolve({ ok: false, reason: 'aborted', output: '' });
    let ended: 'timeout' | 'aborted' | undefined;
    const child = execFile(
      call.program,
      [...call.arguments],
      {
        ...(call.workingDirectory === undefined ? {} : { cwd: call.workingDirectory }),
        env: { ...toolEnvironment, ...call.environment },
        maxBuffer: 1024 * 1024,
      },
      (error, stdout, stderr) => {
        timer.cancel();
        call.signal?.removeEventListener('abort', abort);
        const output = `${stdout}${stderr}`.trim();
        if (error === null) return resolve({ ok: true, output });
        if (ended !== undefined) return resolve({ ok: false, reason: ended, output });
        if (error.code === 'ENOENT') return resolve({ ok: false, reason: 'missing', output: error.message });
        const exitCode = typeof error.code === 'number' ? { exitCode: error.code } : {};
        const killedBy = typeof error.signal === 'string' ? { killedBy: error.signal } : {};
        resolve({
          ok: false,
          reason: 'failed',
          ...exitCode,
          ...killedBy,
          output: output === '' ? error.message : output,
        });
      },
    );
    const end = (why: 'timeout' | 'aborted'): void => {
      ended = why;
      child.kill('SIGKILL');
    };
    const abort = (): void => end('aborted');
    const timer = clock.setTimer(call.timeoutMs, () => end('timeout'));
    call.signal?.addEventListener('abort', abort, { once: true });
  });
}
