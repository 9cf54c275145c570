// QEMU's control protocol (QMP) over a unix socket: one JSON object a line. Knows no guest and decides nothing.

import { createConnection, type Socket } from 'node:net';
import { isRecord } from '../../../base/is-record.ts';
import type { Clock } from '../../../base/clock.ts';

export interface QmpEvent {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Qmp {
  /** The command's `return`. Throws `QmpError` when QEMU refuses, does not answer in time, or has gone. */
  execute(command: string, values?: Readonly<Record<string, unknown>>, timeoutMs?: number): Promise<unknown>;
  /** Resolves when the connection has ended, whoever ended it. */
  readonly closed: Promise<void>;
  close(): void;
}

export class QmpError extends Error {
  override name = 'QmpError';
  /** QEMU itself said no; else nobody knows whether it was done. */
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
  /** For connecting and for commands that name no limit. */
  readonly timeoutMs: number;
  readonly onEvent: (event: QmpEvent) => void;
}

/** A connection that has been greeted and negotiated. */
export async function connectQmp(options: QmpOptions): Promise<Qmp> {
  const socket = createConnection({ path: options.path });
  const session = openSession(socket, options);
  try {
    await session.greeting;
    await session.qmp.execute('qmp_capabilities');
    return session.qmp;
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

function openSession(socket: Socket, options: QmpOptions): { qmp: Qmp; greeting: Promise<void> } {
  const waiting = new Map<number, Waiting>();
  const closed = Promise.withResolvers<void>();
  const greeting = Promise.withResolvers<void>();
  let lastId = 0;
  let text = '';
  let open = true;

  const end = (why: string): void => {
    if (!open) return;
    open = false;
    greetingTimer.cancel();
    greeting.reject(new QmpError(why));
    for (const call of waiting.values()) call.reject(new QmpError(why));
    waiting.clear();
    socket.destroy();
    closed.resolve();
  };

  const receive = (line: string): void => {
    const message = parseObject(line);
    if (message === null) return end(`QEMU at ${options.path} sent a line that is not QMP`);
    if ('QMP' in message) {
      greetingTimer.cancel();
      return greeting.resolve();
    }
    if (typeof message['event'] === 'string') {
      return options.onEvent({ name: message['event'], data: isRecord(message['data']) ? message['data'] : {} });
    }
    const call = typeof message['id'] === 'number' ? waiting.get(message['id']) : undefined;
    if (call === undefined) return; // the answer to a call that was given up
    const error = message['error'];
    if (isRecord(error)) {
      const said = typeof error['desc'] === 'string' ? error['desc'] : 'QEMU refused the command';
      call.reject(new QmpError(said, { refused: true }));
    } else call.resolve(message['return']);
  };

  const greetingTimer = options.clock.setTimer(options.timeoutMs, () => end(`QEMU at ${options.path} did not greet`));
  greeting.promise.catch(() => {}); // whoever connects looks at it; nobody else must
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    text += chunk;
    for (let cut = text.indexOf('\n'); cut >= 0 && open; cut = text.indexOf('\n')) {
      const line = text.slice(0, cut).trim();
      text = text.slice(cut + 1);
      if (line !== '') receive(line);
    }
    if (text.length > lineLengthMax) end(`QEMU at ${options.path} sent an endless line`);
  });
  socket.on('error', (error) => end(`the connection to QEMU at ${options.path} failed: ${error.message}`));
  socket.on('close', () => end(`QEMU at ${options.path} closed the connection`));

  const execute: Qmp['execute'] = (command, values, timeoutMs = options.timeoutMs) => {
    if (!open) return Promise.reject(new QmpError(`cannot send ${command}: QEMU at ${options.path} is not connected`));
    const id = ++lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    waiting.set(id, { resolve, reject });
    const timer = options.clock.setTimer(timeoutMs, () =>
      reject(new QmpError(`QEMU at ${options.path} did not answer ${command} within ${timeoutMs} ms`)),
    );
    socket.write(
      `${JSON.stringify({ execute: command, id, ...(values === undefined ? {} : { arguments: values }) })}\n`,
    );
    return promise.finally(() => {
      timer.cancel();
      waiting.delete(id);
    });
  };
  const close = (): void => end(`the connection to QEMU at ${options.path} was closed`);
  return { qmp: { execute, close, closed: closed.promise }, greeting: greeting.promise };
}

function parseObject(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : null;
  } catch {
    return null; // not JSON: the caller ends the connection
  }
}
