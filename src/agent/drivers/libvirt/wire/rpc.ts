// One connection to a libvirt daemon: calls, their answers, and events, as libvirt frames them (docs/kbase/internals/rpc.rst of libvirt).
// Knows no procedure and decides nothing.
//
//   length, program, version, procedure, type, serial, status: seven words of 32 bits, then the body; the length counts itself

import { createConnection, type Socket } from 'node:net';
import type { Clock } from '../../../../base/clock.ts';
import { type XdrReader, type XdrWriter, xdrReader, xdrWriter } from './xdr.ts';

/** What libvirt itself answered: its own number for it, and its sentence. */
export class LibvirtError extends Error {
  override name = 'LibvirtError';
  /** `virErrorNumber` of libvirt's virterror.h; undefined: the connection failed, and nobody knows whether the call was carried out. */
  readonly code: number | undefined;
  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }
}

/** Of virterror.h, those that are acted on. */
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
  /** For people: what the call is. */
  readonly name: string;
  readonly body?: XdrWriter;
  /** Default: that of the connection. */
  readonly timeoutMs?: number;
}

export interface Rpc {
  /** The body of the answer. Throws `LibvirtError`. */
  call(call: RpcCall): Promise<XdrReader>;
  /** Resolves with the reason when the connection has ended, whoever ended it. */
  readonly closed: Promise<string>;
  close(): void;
}

export interface RpcOptions {
  readonly path: string;
  readonly clock: Clock;
  /** For connecting and for calls that name no limit. */
  readonly timeoutMs: number;
  readonly onEvent: (procedure: number, body: XdrReader) => void;
}

const headerBytes = 28;
/** VIR_NET_MESSAGE_MAX of libvirt 9: 32 MiB and its own length word. */
const messageBytesMax = 32 * 1024 * 1024 + 4;
const version = 1;
const types = { call: 0, reply: 1, event: 2 } as const;
const ok = 0;
/** More than `max_client_requests` of libvirtd.conf (5) would only wait there, and be complained of in its log. */
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
  return speak(socket, options);
}

function speak(socket: Socket, { path, clock, timeoutMs: timeoutMsDefault, onEvent }: RpcOptions): Rpc {
  const pending = new Map<number, Pending>();
  const waiting: (() => void)[] = [];
  const closed = Promise.withResolvers<string>();
  let lastSerial = 0;
  let ended: string | undefined;
  let received: Buffer = Buffer.alloc(0);

  const end = (why: string): void => {
    if (ended !== undefined) return;
    ended = why;
    socket.destroy();
    for (const { name, reject } of pending.values()) reject(new LibvirtError(`${name}: ${why}`));
    pending.clear();
    for (const go of waiting.splice(0)) go();
    closed.resolve(why);
  };

  const receive = (message: Buffer): void => {
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
    if (type === types.event && program === rpcPrograms.remote) return onEvent(procedure, body);
    const call = type === types.reply ? pending.get(serial) : undefined;
    if (call === undefined) return; // of another program, as its keep-alive, or of a call that was given up
    pending.delete(serial);
    waiting.shift()?.();
    if (status === ok) call.resolve(body);
    else call.reject(errorOf(call.name, body));
  };

  socket.on('data', (piece: Buffer) => {
    received = received.length === 0 ? piece : Buffer.concat([received, piece]);
    try {
      while (ended === undefined && received.length >= 4) {
        const length = received.readUInt32BE();
        if (length < headerBytes || length > messageBytesMax)
          return end(`libvirt at ${path} sent a message of ${length} bytes`);
        if (received.length < length) return;
        const message = received.subarray(4, length);
        received = received.subarray(length);
        receive(message);
      }
    } catch (error) {
      end(`libvirt at ${path} sent what cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    }
  });
  socket.on('error', (error) => end(`the connection to libvirt at ${path} failed: ${error.message}`));
  socket.on('close', () => end(`libvirt at ${path} closed the connection`));

  return {
    async call({ program = 'remote', procedure, name, body = xdrWriter(), timeoutMs = timeoutMsDefault }) {
      while (ended === undefined && pending.size >= callsAtOnce)
        await new Promise<void>((resolve) => void waiting.push(resolve));
      if (ended !== undefined) throw new LibvirtError(`${name}: ${ended}`);
      lastSerial += 1;
      const serial = lastSerial;
      const answer = Promise.withResolvers<XdrReader>();
      pending.set(serial, { name, resolve: answer.resolve, reject: answer.reject });
      const bytes = body.bytes();
      const header = xdrWriter()
        .uint(headerBytes + bytes.length)
        .uint(rpcPrograms[program])
        .uint(version)
        .int(procedure)
        .int(types.call)
        .uint(serial)
        .int(ok);
      socket.write(Buffer.concat([header.bytes(), bytes]));
      // A daemon that owes an answer for so long is of no use to the other calls either.
      const timer = clock.setTimer(timeoutMs, () =>
        end(`libvirt at ${path} did not answer ${name} in ${timeoutMs} ms`),
      );
      return answer.promise.finally(() => timer.cancel());
    },
    closed: closed.promise,
    close: () => end('it was closed'),
  };
}

/** `remote_error`: code, domain, message, level, and more that says where in libvirt it was. */
function errorOf(name: string, body: XdrReader): LibvirtError {
  const code = body.int();
  body.int();
  return new LibvirtError(`${name}: ${body.maybeString() ?? `libvirt error ${code}`}`, code);
}
