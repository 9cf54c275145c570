// A command's connection to a guest: a WebSocket to the control plane, which forwards it to the guest's host
// (api/access-protocol.ts).

import { WebSocket } from 'ws';
import type { ClientControl, HostControl } from '../../api/access-protocol.ts';
import { ApiError, isErrorCode } from '../../api/errors.ts';
import { errorOf, pathOf } from '../../api/client/user-client.ts';
import { isRecord } from '../../base/is-record.ts';
import { describeError } from '../../base/log.ts';
import { messageLine } from '../../base/message-line.ts';
import type { Session } from '../session.ts';

/** From api/access-protocol.ts, which would load schemas. */
const subprotocol = 'berth.v1';

export interface GuestLine {
  /** Bytes, and the host's control messages. An error of the host is thrown as `ApiError`. */
  messages(): AsyncIterable<Uint8Array | HostControl>;
  send(bytes: Uint8Array): Promise<void>;
  tell(control: ClientControl | object): Promise<void>;
  end(): void;
  readonly over: AbortSignal;
}

export interface GuestWay {
  readonly name: string;
  /** `console`, `exec`, `vnc` or `ports/<port>`. */
  readonly way: string;
  readonly query?: Readonly<Record<string, string | number>>;
}

/** Connects to the guest. Throws a refusal of the server as `ApiError`; `Unavailable` when there is no response. */
export async function openGuestLine(session: Session, way: GuestWay): Promise<GuestLine> {
  const { servers } = session;
  const tried = new Set<string>();
  let failure: unknown;
  // Nothing has been sent to the guest yet, so every server may be tried, and the first that works and has a connection
  // to the host is used.
  for (let url: string | undefined = servers.current; url !== undefined; url = servers.untried(tried)) {
    if (tried.size > 0) await servers.pause(tried.size - 1);
    tried.add(url);
    try {
      const line = await openLineBy(url, session, way);
      servers.worked(url);
      return line;
    } catch (error) {
      failure ??= error;
      if (!(error instanceof ApiError) || !mayComeBack(error)) throw error;
      if (error.code === 'Unavailable') servers.failed(url);
    }
  }
  throw failure;
}

async function openLineBy(
  serverUrl: string,
  session: Session,
  { name, way, query = {} }: GuestWay,
): Promise<GuestLine> {
  const url = new URL(`${serverUrl}${pathOf('instance', name)}/${way}`);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  url.searchParams.set('project', session.project);
  for (const [field, value] of Object.entries(query)) url.searchParams.set(field, String(value));
  const socket = new WebSocket(url, [subprotocol], {
    perMessageDeflate: false,
    handshakeTimeout: 30_000,
    ...(session.authorities === undefined ? {} : { ca: session.authorities }),
    headers: session.token === undefined ? {} : { authorization: `Bearer ${session.token}` },
  });
  // Created immediately: the guest's first output may arrive together with the response.
  const line = messageLine(socket);
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve());
    socket.once('unexpected-response', (_request, response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.length < 64 && pieces.push(piece));
      response.once('close', () => reject(errorOf(response.statusCode ?? 0, Buffer.concat(pieces).toString())));
    });
    socket.on('error', (cause) =>
      reject(new ApiError('Unavailable', `no answer from ${serverUrl}: ${describeError(cause)}`, { cause })),
    );
  });
  return {
    async *messages() {
      for await (const message of line.messages()) {
        if (typeof message !== 'string') {
          yield message;
          continue;
        }
        const control: HostControl = JSON.parse(message);
        if (control.type === 'error')
          throw new ApiError(
            isErrorCode(control.code) ? control.code : 'Internal',
            String(control.message),
            control.reason === undefined ? {} : { details: { reason: control.reason } },
          );
        yield control;
      }
    },
    send: (bytes) => line.send(bytes),
    tell: (control) => line.send(JSON.stringify(control)),
    end: () => line.end(),
    over: line.over,
  };
}

/** Whether the host does not support it and ssh may, where the guest runs an ssh server. */
export function needsSsh(error: unknown): boolean {
  return reasonOf(error) === 'NeedsSsh';
}

/** Whether guests of this kind have no console: containers, and zones. */
export function hasNoConsole(error: unknown): boolean {
  return reasonOf(error) === 'NoConsole';
}

/** Advice when a request is refused because the guest is suspended; empty for other errors. */
export function adviceWhenSuspended(name: string): (error: unknown) => string {
  return (error) => (reasonOf(error) === 'Suspended' ? `resume it first: berth resume ${name}` : '');
}

function reasonOf(error: unknown): unknown {
  return error instanceof ApiError && isRecord(error.details) ? error.details['reason'] : undefined;
}

/** Whether a retry may succeed: after a broken connection, or while a server or host is unavailable. */
export function mayComeBack(error: unknown): boolean {
  return !(error instanceof ApiError) || error.code === 'Unavailable' || error.code === 'HostUnreachable';
}
