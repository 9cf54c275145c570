// QEMU's control protocol (QMP) over a unix socket: one JSON object a line. Knows no guest and decides nothing.

import { createConnection, type Socket } from 'node:net';
import { isRecord } from '../../../base/is-record.ts';
import type { Clock, Timer } from '../../../base/clock.ts';

export interface QmpEvent {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Qmp {
  /** The command's `return`. Throws `QmpError` when QEMU refuses, does not answer in time, or has gone. */
  execute(command: string, values?: Readonly<Record<string, unknown>>, timeoutMs?: number): Promise<unknown>;
  /** Resolves when the connection has ended, on either side. */
  readonly closed: Promise<void>;
  close(): void;
}

export class QmpError extends Error {
  override name = 'QmpError';
  /** QEMU itself refused the command; false: it is unknown whether the command was carried out. */
  readonly refused: boolean;
  constructor(message: string, { refused = false }: { readonly refused?: boolean } = {}) {
    super(message);
    this.refused = refused;
  }
}

export interface QmpOptions {
  /** At most 107 bytes, the kernel's limit. */
  readonly path: string;
  readonly clock: Clock;
  /** For connecting, and for commands without a limit of their own. */
  readonly timeoutMs: number;
  readonly onEvent: (event: QmpEvent) => void;
}

/** Connects, waits for the greeting and negotiates capabilities. */
export async function connectQmp(options: QmpOptions): Promise<Qmp> {
  const socket = createConnection({ path: options.path });
  const session = new QmpSession(socket, options);
  try {
    await session.greeting;
    await session.execute('qmp_capabilities');
    return session;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: QmpError) => void;
}

/** A line longer than this is not QMP as we use it. */
const lineLengthMax = 4 * 1024 * 1024;

class QmpSession implements Qmp {
  readonly #socket: Socket;
  readonly #options: QmpOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #closed = Promise.withResolvers<void>();
  readonly #greeting = Promise.withResolvers<void>();
  readonly #greetingTimer: Timer;
  readonly closed: Promise<void> = this.#closed.promise;
  /** Rejects when QEMU does not greet in time. */
  readonly greeting: Promise<void> = this.#greeting.promise;
  #lastId = 0;
  #text = '';
  #open = true;

  constructor(socket: Socket, options: QmpOptions) {
    const { path, clock, timeoutMs } = options;
    this.#socket = socket;
    this.#options = options;
    this.#greetingTimer = clock.setTimer(timeoutMs, () => this.#end(`QEMU at ${path} did not greet`));
    this.#greeting.promise.catch(() => {}); // only the caller that connects handles it
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => this.#take(chunk));
    socket.on('error', (error) => this.#end(`the connection to QEMU at ${path} failed: ${error.message}`));
    socket.on('close', () => this.#end(`QEMU at ${path} closed the connection`));
  }

  execute(
    command: string,
    values?: Readonly<Record<string, unknown>>,
    timeoutMs = this.#options.timeoutMs,
  ): Promise<unknown> {
    const { path, clock } = this.#options;
    if (!this.#open) return Promise.reject(new QmpError(`cannot send ${command}: QEMU at ${path} is not connected`));
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { resolve, reject });
    const timer = clock.setTimer(timeoutMs, () =>
      reject(new QmpError(`QEMU at ${path} did not answer ${command} within ${timeoutMs} ms`)),
    );
    const message = { execute: command, id, ...(values === undefined ? {} : { arguments: values }) };
    this.#socket.write(`${JSON.stringify(message)}\n`);
    return promise.finally(() => {
      timer.cancel();
      this.#waiting.delete(id);
    });
  }

  close(): void {
    this.#end(`the connection to QEMU at ${this.#options.path} was closed`);
  }

  #end(why: string): void {
    if (!this.#open) return;
    this.#open = false;
    this.#greetingTimer.cancel();
    this.#greeting.reject(new QmpError(why));
    for (const call of this.#waiting.values()) call.reject(new QmpError(why));
    this.#waiting.clear();
    this.#socket.destroy();
    this.#closed.resolve();
  }

  #take(chunk: string): void {
    this.#text += chunk;
    for (let cut = this.#text.indexOf('\n'); cut >= 0 && this.#open; cut = this.#text.indexOf('\n')) {
      const line = this.#text.slice(0, cut).trim();
      this.#text = this.#text.slice(cut + 1);
      if (line !== '') this.#receive(line);
    }
    if (this.#text.length > lineLengthMax) this.#end(`QEMU at ${this.#options.path} sent an endless line`);
  }

  #receive(line: string): void {
    const message = parseObject(line);
    if (message === null) return this.#end(`QEMU at ${this.#options.path} sent a line that is not QMP`);
    if ('QMP' in message) {
      this.#greetingTimer.cancel();
      return this.#greeting.resolve();
    }
    if (typeof message['event'] === 'string') {
      const data = isRecord(message['data']) ? message['data'] : {};
      return this.#options.onEvent({ name: message['event'], data });
    }
    const call = typeof message['id'] === 'number' ? this.#waiting.get(message['id']) : undefined;
    if (call === undefined) return; // the answer to a call that was given up
    const error = message['error'];
    if (!isRecord(error)) return call.resolve(message['return']);
    const said = typeof error['desc'] === 'string' ? error['desc'] : 'QEMU refused the command';
    call.reject(new QmpError(said, { refused: true }));
  }
}

function parseObject(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : null;
  } catch {
    return null; // not JSON: the caller ends the connection
  }
}
