// One connection to a libvirt daemon: calls, their answers, and events, as libvirt frames them (docs/kbase/internals/rpc.rst of libvirt).
// Knows no procedure and decides nothing.
//
//   length, program, version, procedure, type, serial, status: seven words of 32 bits, then the body; the length counts itself

import { createConnection, type Socket } from 'node:net';
import type { Clock } from '../../../../base/clock.ts';
import { type XdrReader, type XdrWriter, xdrReader, xdrWriter } from './xdr.ts';

/** An error of libvirt, with libvirt's own code and message. */
export class LibvirtError extends Error {
  override name = 'LibvirtError';
  /** `virErrorNumber` of libvirt's virterror.h; undefined: the connection failed, so it is unknown whether the call was carried out. */
  readonly code: number | undefined;
  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }
}

/** The error numbers of virterror.h that the driver handles. */
export const libvirtErrors = {
  operationInvalid: 55,
  noDomain: 42,
  noNetwork: 43,
  agentUnresponsive: 86,
} as const;

/** `REMOTE_PROGRAM` of libvirt's remote_protocol.x, and `QEMU_PROGRAM` of its qemu_protocol.x. */
export const rpcPrograms = { remote: 0x2000_8086, qemu: 0x2000_8087 } as const;

export interface RpcCall {
  /** Default: remote. */
  readonly program?: keyof typeof rpcPrograms;
  readonly procedure: number;
  /** The name of the call, for people. */
  readonly name: string;
  readonly body?: XdrWriter;
  /** Default: the limit of the connection. */
  readonly timeoutMs?: number;
}

export interface Rpc {
  /** The body of the answer. Throws `LibvirtError`. */
  call(call: RpcCall): Promise<XdrReader>;
  /** Resolves with the reason when the connection has ended, on either side. */
  readonly closed: Promise<string>;
  close(): void;
}

export interface RpcOptions {
  readonly path: string;
  readonly clock: Clock;
  /** For connecting, and for calls without a limit of their own. */
  readonly timeoutMs: number;
  readonly onEvent: (procedure: number, body: XdrReader) => void;
}

const headerBytes = 28;
/** VIR_NET_MESSAGE_MAX of libvirt 9: 32 MiB and its own length word. */
const messageBytesMax = 32 * 1024 * 1024 + 4;
const version = 1;
const types = { call: 0, reply: 1, event: 2 } as const;
const ok = 0;
/** `max_client_requests` of libvirtd.conf (5): more calls would wait in the daemon, and be reported in its log. */
const callsAtOnce = 5;

interface Pending {
  readonly name: string;
  readonly resolve: (body: XdrReader) => void;
  readonly reject: (error: LibvirtError) => void;
}

/** Resolves when it is connected. */
export async function connectRpc(options: RpcOptions): Promise<Rpc> {
  const { path, clock, timeoutMs } = options;
  const socket = createConnection({ path });
  const connected = Promise.withResolvers<void>();
  const timer = clock.setTimer(timeoutMs, () =>
    connected.reject(new LibvirtError(`libvirt at ${path} does not answer`)),
  );
  socket.once('connect', connected.resolve);
  const refused = (error: Error): void => connected.reject(new LibvirtError(`libvirt at ${path}: ${error.message}`));
  socket.once('error', refused);
  try {
    await connected.promise;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    timer.cancel();
    socket.off('error', refused);
  }
  return new RpcSession(socket, options);
}

class RpcSession implements Rpc {
  readonly #socket: Socket;
  readonly #options: RpcOptions;
  readonly #pending = new Map<number, Pending>();
  /** Calls beyond `callsAtOnce`. */
  readonly #waiting: (() => void)[] = [];
  readonly #closed = Promise.withResolvers<string>();
  readonly closed: Promise<string> = this.#closed.promise;
  #lastSerial = 0;
  #ended: string | undefined;
  #received: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, options: RpcOptions) {
    const { path } = options;
    this.#socket = socket;
    this.#options = options;
    socket.on('data', (piece: Buffer) => this.#take(piece));
    socket.on('error', (error) => this.#end(`the connection to libvirt at ${path} failed: ${error.message}`));
    socket.on('close', () => this.#end(`libvirt at ${path} closed the connection`));
  }

  async call({
    program = 'remote',
    procedure,
    name,
    body = xdrWriter(),
    timeoutMs = this.#options.timeoutMs,
  }: RpcCall): Promise<XdrReader> {
    while (this.#ended === undefined && this.#pending.size >= callsAtOnce)
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    if (this.#ended !== undefined) throw new LibvirtError(`${name}: ${this.#ended}`);
    this.#lastSerial += 1;
    const serial = this.#lastSerial;
    const answer = Promise.withResolvers<XdrReader>();
    this.#pending.set(serial, { name, resolve: answer.resolve, reject: answer.reject });
    this.#socket.write(callMessage({ program, procedure, serial, body: body.bytes() }));
    // Ends the connection: a daemon that does not answer for so long is of no use to the other calls either.
    const timer = this.#options.clock.setTimer(timeoutMs, () =>
      this.#end(`libvirt at ${this.#options.path} did not answer ${name} in ${timeoutMs} ms`),
    );
    return answer.promise.finally(() => timer.cancel());
  }

  close(): void {
    this.#end('it was closed');
  }

  #end(why: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = why;
    this.#socket.destroy();
    for (const { name, reject } of this.#pending.values()) reject(new LibvirtError(`${name}: ${why}`));
    this.#pending.clear();
    for (const go of this.#waiting.splice(0)) go();
    this.#closed.resolve(why);
  }

  #take(piece: Buffer): void {
    const { path } = this.#options;
    this.#received = this.#received.length === 0 ? piece : Buffer.concat([this.#received, piece]);
    try {
      while (this.#ended === undefined && this.#received.length >= 4) {
        const length = this.#received.readUInt32BE();
        if (length < headerBytes || length > messageBytesMax)
          return this.#end(`libvirt at ${path} sent a message of ${length} bytes`);
        if (this.#received.length < length) return;
        const message = this.#received.subarray(4, length);
        this.#received = this.#received.subarray(length);
        this.#receive(message);
      }
    } catch (error) {
      this.#end(
        `libvirt at ${path} sent what cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }

  #receive(message: Buffer): void {
    const header = xdrReader(message);
    const [program, , procedure, type, serial, status] = [
      header.uint(),
      header.uint(),
      header.int(),
      header.int(),
      header.uint(),
      header.int(),
    ];
    const body = xdrReader(message.subarray(headerBytes - 4));
    if (type === types.event && program === rpcPrograms.remote) return this.#options.onEvent(procedure, body);
    const call = type === types.reply ? this.#pending.get(serial) : undefined;
    if (call === undefined) return; // from another program, such as keep-alive, or the reply to a call that was given up
    this.#pending.delete(serial);
    this.#waiting.shift()?.();
    if (status === ok) call.resolve(body);
    else call.reject(errorOf(call.name, body));
  }
}

function callMessage(call: {
  readonly program: keyof typeof rpcPrograms;
  readonly procedure: number;
  readonly serial: number;
  readonly body: Buffer;
}): Buffer {
  const header = xdrWriter()
    .uint(headerBytes + call.body.length)
    .uint(rpcPrograms[call.program])
    .uint(version)
    .int(call.procedure)
    .int(types.call)
    .uint(call.serial)
    .int(ok);
  return Buffer.concat([header.bytes(), call.body]);
}

/** `remote_error`: code, domain, message, level, and fields that say where in libvirt the error occurred. */
function errorOf(name: string, body: XdrReader): LibvirtError {
  const code = body.int();
  body.int();
  return new LibvirtError(`${name}: ${body.maybeString() ?? `libvirt error ${code}`}`, code);
}
