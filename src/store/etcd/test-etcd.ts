// Private etcd servers for tests: real ones, on free loopback ports, with their data in a temporary directory. They end
// with the test, even when it is killed.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../base/test-ports.ts';

export interface TestEtcd {
  readonly members: readonly TestMember[];
  /** The part of a store URL after `etcd:`, with a unique prefix. */
  rest(prefix?: string): string;
  stop(): Promise<void>;
}

export class TestMember {
  readonly name: string;
  readonly clientPort: number;
  readonly #arguments: readonly string[];
  #process: ChildProcess | undefined;
  #output = '';

  constructor(name: string, clientPort: number, words: readonly string[]) {
    this.name = name;
    this.clientPort = clientPort;
    this.#arguments = words;
  }

  start(): void {
    // Dies with the test, in whatever way the test ends.
    this.#process = spawn('setpriv', ['--pdeathsig', 'KILL', 'etcd', ...this.#arguments], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
    });
    this.#process.stderr?.on('data', (text: Buffer) => {
      this.#output = (this.#output + text.toString()).slice(-4_000);
    });
    this.#process.on('error', (error) => {
      this.#output += error.message;
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Resolves when all of its threads have stopped. */
  async freeze(): Promise<void> {
    const tasks = `/proc/${this.#process?.pid}/task`;
    this.signal('SIGSTOP');
    const running = (task: string): boolean => !/^State:\tT/m.test(readFileSync(`${tasks}/${task}/status`, 'utf8'));
    while (readdirSync(tasks).some(running)) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** Resolves when it responds and has a leader. */
  async ready(): Promise<void> {
    for (;;) {
      const child = this.#process;
      if (!child || child.exitCode !== null || child.signalCode !== null)
        throw new Error(`etcd ${this.name} ended: ${this.#output}`);
      try {
        await this.ask('kv/range', { key: Buffer.from('ready').toString('base64') });
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /** Resolves when it responds, even with a refusal. */
  async open(): Promise<void> {
    while (
      !(await this.ask('maintenance/status', {}).then(
        () => true,
        () => false,
      ))
    )
      await new Promise((resolve) => setTimeout(resolve, 50));
  }

  /** A request to etcd's own JSON gateway: an independent check, and calls that the store does not use. */
  async ask(path: string, body: object): Promise<Record<string, string>> {
    return this.askAny(path, body);
  }

  /** The same; the caller knows the form of the response. */
  async askAny(path: string, body: object) {
    const answer = await fetch(`http://127.0.0.1:${this.clientPort}/v3/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(5_000),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${text}`);
    return JSON.parse(text);
  }
}

export async function startEtcd({
  size = 1,
  words = [],
  scheme = 'http',
}: {
  readonly size?: number;
  readonly words?: readonly string[];
  /** `https`: for clients; then the test does not wait for its response. */
  readonly scheme?: 'http' | 'https';
} = {}): Promise<TestEtcd> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-etcd-'));
  const ports = await freePorts(2 * size);
  const url = (i: number): string => `http://127.0.0.1:${ports[i]}`;
  const cluster = Array.from({ length: size }, (_, i) => `m${i}=${url(2 * i + 1)}`).join(',');
  const members = Array.from({ length: size }, (_, i) => {
    const [client, peer] = [url(2 * i).replace('http', scheme), url(2 * i + 1)];
    return new TestMember(`m${i}`, ports[2 * i] ?? 0, [
      ...['--name', `m${i}`, '--data-dir', join(folder, `m${i}`), '--logger', 'zap', '--log-level', 'warn'],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', cluster],
      ...words,
    ]);
  });
  for (const member of members) member.start();
  if (scheme === 'http') await Promise.all(members.map((member) => member.ready()));
  let prefixes = 0;
  return {
    members,
    rest: (prefix = `berth-${prefixes++}`) =>
      `//${members.map(({ clientPort }) => `127.0.0.1:${clientPort}`).join(',')}/${prefix}`,
    async stop() {
      await Promise.all(members.map((member) => member.kill()));
      rmSync(folder, { recursive: true });
    },
  };
}
