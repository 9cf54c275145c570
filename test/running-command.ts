// A command of `berth` that goes on: what it says can be awaited, and it can be typed to.

import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));

export interface RunningCommand {
  readonly child: ChildProcess;
  type(text: string): void;
  /** Resolves with all of its standard output once that matches; rejects when it ends before. */
  until(pattern: RegExp): Promise<string>;
}

export function runningCommand(environment: Record<string, string>, words: readonly string[]): RunningCommand {
  const child = spawn(process.execPath, [main, ...words], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  let said = '';
  let complained = '';
  const listeners = new Set<() => void>();
  child.stdout.on('data', (bytes: Buffer) => {
    said += bytes.toString('latin1');
    for (const listener of listeners) listener();
  });
  child.stderr.on('data', (bytes: Buffer) => (complained += bytes.toString()));
  return {
    child,
    type: (text) => void child.stdin.write(text),
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (!pattern.test(said)) return;
          listeners.delete(look);
          resolve(said);
        };
        listeners.add(look);
        child.once('exit', () => reject(new Error(`berth ${words.join(' ')} ended: ${said}\n${complained}`)));
        look();
      }),
  };
}
