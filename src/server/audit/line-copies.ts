// Copies of the lines of an audit log, for another program: as JSON lines to standard output, or to syslog. They never hold up the log:
// what the reader is too slow for is dropped and counted.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';

const queuedBytesMax = 4 * 1024 * 1024;

export class LineCopies {
  readonly #out: Pick<Writable, 'write' | 'writableLength'>;
  #dropped = 0;

  constructor(out: Pick<Writable, 'write' | 'writableLength'>) {
    this.#out = out;
  }

  /** Lines that were dropped since the last copy. */
  get dropped(): number {
    return this.#dropped;
  }

  readonly take = (line: string): void => {
    if (this.#out.writableLength > queuedBytesMax) {
      this.#dropped += 1;
      return;
    }
    if (this.#dropped > 0) this.#out.write(`{"dropped":${this.#dropped}}\n`);
    this.#dropped = 0;
    this.#out.write(`${line}\n`);
  };
}

const beginAgainMs = 5_000;

/** `logger` of util-linux: Node has no datagram sockets of Unix, which syslog listens on. */
const loggerCommand = ['logger', '--tag', 'berth-audit', '--priority', 'authpriv.info', '--size', '4KiB'] as const;

/** Lines to syslog. The program is started with the first one, and again when it ends. */
export class SyslogCopies {
  readonly #command: readonly [string, ...string[]];
  readonly #clock: Clock;
  readonly #log: Logger;
  #child: ChildProcess | undefined;
  #copies: LineCopies | undefined;
  #timer: Timer | undefined;
  #dropped = 0;
  #stopped = false;

  constructor({ clock, log }: { clock: Clock; log: Logger }, command: readonly [string, ...string[]] = loggerCommand) {
    this.#command = command;
    this.#clock = clock;
    this.#log = log;
  }

  readonly take = (line: string): void => {
    if (this.#copies === undefined && this.#timer === undefined && !this.#stopped) this.#begin();
    if (this.#copies === undefined) this.#dropped += 1;
    else this.#copies.take(line);
  };

  get dropped(): number {
    return this.#dropped + (this.#copies?.dropped ?? 0);
  }

  /** Resolves when the program has read all of it and ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    const child = this.#child;
    if (child === undefined) return;
    await new Promise<void>((resolve) => {
      child.once('close', () => resolve());
      child.stdin?.end();
    });
  }

  #begin(): void {
    const [program, ...words] = this.#command;
    const child = spawn(program, words, { stdio: ['pipe', 'ignore', 'ignore'] });
    const { stdin } = child;
    this.#child = child;
    this.#copies = new LineCopies(stdin);
    stdin.on('error', () => {}); // the program has ended: told below
    let ended = false;
    const end = (why: string): void => {
      if (ended) return;
      ended = true;
      this.#dropped += this.#copies?.dropped ?? 0;
      this.#child = this.#copies = undefined;
      if (this.#stopped) return;
      this.#log.warn('no copies of the audit log go to syslog', { program, why });
      this.#timer = this.#clock.setTimer(beginAgainMs, () => (this.#timer = undefined), { background: true });
    };
    child.once('error', (error) => end(describeError(error)));
    child.once('close', (code) => end(`it ended with ${code}`));
  }
}
