// A fencing hook that is a program: `PROGRAM ARGUMENTS off HOST ADDRESS` powers a machine off, and with `status` its
// last line of output is the power state. Never through a shell.

import { execFile } from 'node:child_process';
import type { FencedHost, FenceHook } from './fencing.ts';

export function commandHook(command: readonly string[], timeoutMs: number): FenceHook {
  return {
    async off(host, signal) {
      await run(command, { verb: 'off', host, timeoutMs, signal });
      return `${command[0]} off: exit code 0`;
    },
    async state(host, signal) {
      const output = await run(command, { verb: 'status', host, timeoutMs, signal });
      return (output.trim().split('\n').at(-1) ?? '').trim().toLowerCase().slice(0, 64);
    },
  };
}

function run(
  [program = '', ...words]: readonly string[],
  call: { readonly verb: string; readonly host: FencedHost; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<string> {
  const { metadata, status } = call.host;
  const args = [...words, call.verb, metadata.name, status.address ?? ''];
  return new Promise((resolve, reject) => {
    // Nothing of the server's environment: it may hold secrets.
    const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
    const options = { env, timeout: call.timeoutMs, signal: call.signal, maxBuffer: 1024 * 1024 } as const;
    execFile(program, args, { ...options, killSignal: 'SIGKILL' }, (error, stdout) => {
      if (error === null) return resolve(stdout);
      const how = error.killed ? 'no end within its time' : `exit code ${error.code ?? 'unknown'}`;
      reject(new Error(`${program} ${call.verb} ${metadata.name}: ${how}`));
    });
  });
}
