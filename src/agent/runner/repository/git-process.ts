// Runs one git command to its end, or ends it with everything that it started. It never leaves a process behind.

import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { assert } from '../../../base/assert.ts';
import type { Clock } from '../../../base/clock.ts';

interface GitCall {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  /** Who runs it. Default: the agent's user, or whom the words of the command change to. */
  readonly user?: number;
  /** Written to descriptor 3 of git, which then ends. */
  readonly secret?: string;
  /** Reads what git writes. If it throws, git is ended. Default: the output is part of the result. */
  readonly consume?: (output: Readable) => Promise<void>;
  /** The reason of an abort is thrown once git has ended. */
  readonly signal: AbortSignal;
}

export interface GitHands {
  readonly clock: Clock;
  /** Signals a process, or with a negative number its group. */
  readonly kill: (pid: number, signal: 'SIGKILL') => boolean;
}

export interface GitResult {
  readonly exitCode: number | undefined;
  /** The signal that ended it, where that was not ours. */
  readonly killedBy: string | undefined;
  readonly output: string;
  /** The last of what it wrote to stderr. */
  readonly said: string;
  /** There is no such program. */
  readonly missing: boolean;
}

export const credentialDescriptor = 3;
const outputBytesMax = 4096;
const saidBytesMax = 16_384;
/** What has left git's process group may hold its output open; nothing is read from it after this time. */
const closePatienceMs = 5000;

export async function runGit({ clock, kill }: GitHands, call: GitCall): Promise<GitResult> {
  const { signal } = call;
  signal.throwIfAborted();
  const [program = 'git', ...words] = call.command;
  const child = spawn(program, words, {
    cwd: call.workingDirectory,
    env: call.environment,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    ...(call.user === undefined ? {} : { uid: call.user, gid: call.user }),
    detached: true, // a group of its own, so that all that git starts ends with it
  });
  const endGroup = (): void => {
    if (child.pid !== undefined) kill(-child.pid, 'SIGKILL');
  };
  signal.addEventListener('abort', endGroup, { once: true });
  const { stdout, stderr } = child;
  assert(stdout !== null && stderr !== null, 'git was started without pipes');
  giveSecret(child.stdio[3], call.secret ?? '');
  let said = '';
  stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('latin1')).slice(-saidBytesMax);
  });
  const ended = new Promise<Omit<GitResult, 'output' | 'said'>>((resolve) => {
    child.once('error', (error) =>
      resolve({ exitCode: undefined, killedBy: undefined, missing: 'code' in error && error.code === 'ENOENT' }),
    );
    child.once('exit', (exitCode, killedBy) => {
      endGroup();
      const patience = clock.setTimer(closePatienceMs, () => {
        stdout.destroy();
        stderr.destroy();
      });
      const result = { exitCode: exitCode ?? undefined, killedBy: killedBy ?? undefined, missing: false };
      child.once('close', () => {
        patience.cancel();
        resolve(result);
      });
    });
  });
  let output = '';
  const consume =
    call.consume ??
    (async (from: Readable) => {
      for await (const chunk of from) output = (output + String(chunk)).slice(0, outputBytesMax);
    });
  const failure = await consume(stdout).then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  if (failure !== undefined) endGroup();
  stdout.resume();
  const result = await ended;
  signal.removeEventListener('abort', endGroup);
  signal.throwIfAborted();
  // An archive that ends too soon is told by git's own words, where it has some.
  const failedItself = result.missing || (result.exitCode ?? 0) > 0;
  if (failure !== undefined && !failedItself) throw failure.error;
  return { ...result, output: output.trim(), said };
}

function giveSecret(pipe: unknown, secret: string): void {
  const end = pipe as Writable; // stdio[3] is 'pipe': node's types know the first three only
  end.on('error', () => {}); // git ended without reading it
  end.end(secret);
}
