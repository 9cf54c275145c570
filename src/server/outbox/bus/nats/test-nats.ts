// A NATS server with JetStream for a test: in a temporary directory, on a free port of loopback. It never outlives the process that
// started it.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../../../../base/test-ports.ts';

export interface TestNats {
  readonly url: string;
  start(): Promise<void>;
  /** As if it were killed; what it has stored stays. */
  kill(): Promise<void>;
  dispose(): Promise<void>;
}

export async function startNats(words: readonly string[] = []): Promise<TestNats> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-nats-'));
  const port = await freePort();
  let server: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    const own = ['-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', folder, ...words];
    const child = spawn('setpriv', ['--pdeathsig=KILL', 'nats-server', ...own], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    server = child;
    let log = '';
    for await (const line of createInterface({ input: child.stderr })) {
      log += `${line}\n`;
      if (line.includes('Server is ready')) break;
    }
    if (!log.includes('Server is ready')) throw new Error(`NATS did not start:\n${log}`);
    child.stderr.resume();
  };
  const kill = async (): Promise<void> => {
    const child = server;
    server = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  await start();
  return {
    url: `nats://127.0.0.1:${port}`,
    start,
    kill,
    async dispose() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
