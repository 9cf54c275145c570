// The runner's script in a shell of this machine, with a socket as its port. Used by tests only.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { environment, system } from '../../../base/system.ts';
import { type AgentCommand, encodeCommand, FrameDecoder, type GuestFrame, type RunStream } from '../protocol.ts';
import { runnerScript } from './runner-script.ts';

export const shells = ['dash', 'busybox'] as const;
export type Shell = (typeof shells)[number];

export interface TestGuestOptions {
  readonly shell: Shell;
  /** Text of the file `script`; absent: the file `program` of the work directory runs. */
  readonly script?: string;
  readonly program?: string;
  readonly env?: string;
  readonly artifacts?: readonly string[];
  readonly work?: Readonly<Record<string, string>>;
  /** As over a serial port: with checksums. */
  readonly checked?: boolean;
}

/** A guest with one run, and an agent that hears it by hand. */
export class TestGuest {
  readonly folder: string;
  readonly port: Duplex;
  readonly #child: ChildProcess;
  readonly #texts: Record<RunStream, Buffer[]> = { stdout: [], stderr: [], artifacts: [] };
  readonly #frames: GuestFrame[] = [];
  #decoder = new FrameDecoder();
  #nonces = 0;
  #waiting: { readonly met: () => boolean; readonly resolve: () => void }[] = [];
  /** Acknowledges what it hears. */
  acknowledges = true;

  constructor(folder: string, child: ChildProcess) {
    this.folder = folder;
    this.#child = child;
    this.port = child.stdio[4] as Duplex;
    this.port.on('data', (bytes: Buffer) => this.#hear(bytes));
    this.port.on('error', () => {});
  }

  say(command: AgentCommand): void {
    this.port.write(encodeCommand(command));
  }

  /** As an agent that has just connected: nothing counts before the welcome. */
  async hello(): Promise<GuestFrame> {
    const nonce = `${++this.#nonces}`.padStart(8, '0');
    this.#decoder = new FrameDecoder();
    this.#decoder.expect(nonce);
    const offsets = { stdout: this.bytes('stdout'), stderr: this.bytes('stderr'), artifacts: this.bytes('artifacts') };
    this.port.write('\n');
    this.say({ kind: 'hello', nonce, offsets });
    return this.frame((frame) => frame.kind === 'welcome' && frame.nonce === nonce);
  }

  text(stream: RunStream): string {
    return this.content(stream).toString();
  }

  content(stream: RunStream): Buffer {
    return Buffer.concat(this.#texts[stream]);
  }

  bytes(stream: RunStream): number {
    return this.#texts[stream].reduce((sum, { length }) => sum + length, 0);
  }

  /** The first that is so, now or later. */
  async frame(wanted: (frame: GuestFrame) => boolean): Promise<GuestFrame> {
    await this.until(() => this.#frames.some(wanted));
    return this.#frames.find(wanted) as GuestFrame;
  }

  async exitCode(): Promise<number> {
    const frame = await this.frame(({ kind }) => kind === 'exit');
    return frame.kind === 'exit' ? frame.code : -1;
  }

  async until(met: () => boolean): Promise<void> {
    if (met()) return;
    await new Promise<void>((resolve) => this.#waiting.push({ met, resolve }));
  }

  /** Everything up to the runner's own end. */
  async finish(): Promise<number> {
    const code = await this.exitCode();
    await this.frame(({ kind }) => kind === 'done');
    const closed = new Promise((resolve) => this.#child.once('exit', resolve));
    this.say({ kind: 'bye', power: 'stay' });
    await closed;
    return code;
  }

  async close(): Promise<void> {
    if (this.#child.pid !== undefined) system.signal(-this.#child.pid, 'SIGKILL');
    this.port.destroy();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  #hear(bytes: Buffer): void {
    for (const heard of this.#decoder.push(bytes)) {
      if (heard.kind === 'lost') throw new Error(heard.why);
      if (heard.kind === 'data') this.#take(heard);
      else this.#frames.push(heard);
    }
    const met = this.#waiting.filter((each) => each.met());
    this.#waiting = this.#waiting.filter((each) => !met.includes(each));
    for (const each of met) each.resolve();
  }

  #take({ stream, offset, bytes }: Extract<GuestFrame, { kind: 'data' }>): void {
    const known = this.bytes(stream) - offset;
    if (known < 0) throw new Error(`${stream} has a gap before ${offset}`);
    if (known < bytes.length) this.#texts[stream].push(Buffer.from(bytes.subarray(known)));
    if (this.acknowledges) this.say({ kind: 'ack', stream, offset: this.bytes(stream) });
  }
}

export async function startTestGuest(options: TestGuestOptions): Promise<TestGuest> {
  const { shell, script, program = '.solstice/job.sh', env = '', artifacts = [], work = {}, checked = false } = options;
  const folder = await mkdtemp(join(tmpdir(), 'berth-runner-'));
  const files: Record<string, string> = {
    'runner.sh': runnerScript,
    settings: `program='${program}'\n`,
    env,
    artifacts: artifacts.map((each) => `${each}\n`).join(''),
    ...(script === undefined ? {} : { script }),
  };
  await mkdir(join(folder, 'work', '.solstice'), { recursive: true });
  await mkdir(join(folder, 'bin'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  for (const [name, text] of Object.entries(work)) await writeFile(join(folder, 'work', name), text);
  if (shell === 'busybox') execFileSync('busybox', ['--install', '-s', join(folder, 'bin')]);
  const [command, ...words] = shell === 'busybox' ? [join(folder, 'bin', 'sh')] : ['dash'];
  const child = spawn(
    command ?? 'sh',
    [...words, join(folder, 'runner.sh'), folder, 'given', ...(checked ? ['checked'] : [])],
    {
      stdio: ['ignore', 'ignore', 'ignore', 'ignore', 'pipe'],
      env: { PATH: shell === 'busybox' ? join(folder, 'bin') : environment()['PATH'] },
      detached: true,
    },
  );
  return new TestGuest(folder, child);
}
