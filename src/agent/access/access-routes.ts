// The requests that the control plane makes to this host for a client that connects to a guest. It is not trusted blindly: every
// id, number and message is checked here.
//
//   POST /guests/{instanceId}/console?incarnation=I&offset=N&history=N
//   POST /guests/{instanceId}/exec?incarnation=I&session=S&received=N
//   POST /guests/{instanceId}/ports/{port}?incarnation=I
//   POST /guests/{instanceId}/vnc?incarnation=I
//
// The body, both ways, is the client's WebSocket (api/access-protocol.ts).

import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { CopyRequest, ExecRequest } from '../../api/access-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import { parse } from '../../api/parse.ts';
import type { Carried } from '../../base/carried.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { isRecord } from '../../base/is-record.ts';
import type { Logger } from '../../base/log.ts';
import { NeedsSsh } from '../drivers/needs-ssh.ts';
import type { Driver, Guest } from '../drivers/driver.ts';
import type { NameOf } from '../host/named.ts';
import { refusalOf } from './refusal.ts';
import { acceptWebSocket } from './accept-web-socket.ts';
import { carry } from './carry.ts';
import { serveConsole } from './console-session.ts';
import { type Conversation, converse } from './conversation.ts';
import type { ExecSessions } from './exec-sessions.ts';

export interface AccessParts {
  readonly drivers: readonly Driver[];
  readonly sessions: ExecSessions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly carried?: Carried;
}

/** A checked request: the guest exists, and its driver supports it. */
export interface Way {
  serve(conversation: Conversation): Promise<void>;
  /** Called instead when there is no client to serve: closes what was opened. Absent: nothing was opened. */
  abandon?(): void;
}

const pathPattern = /^\/guests\/(inst_[0-9a-z]{26})\/(console|exec|vnc|ports\/(\d{1,5}))$/;

/** Undefined: the path is not one of these. Throws `ApiError`, or `DriverError`, before the client is accepted. */
export async function wayInto(parts: AccessParts, url: URL): Promise<Way | undefined> {
  const [, instanceId, kind, port] = pathPattern.exec(url.pathname) ?? [];
  if (instanceId === undefined || kind === undefined) return undefined;
  const driver = parts.drivers.find((each) => each.guests().some((guest) => guest.instanceId === instanceId));
  const guest = driver?.guests().find((each) => each.instanceId === instanceId);
  const incarnation = numberOf(url, 'incarnation');
  // A later incarnation of the instance is another guest, and permission for one is not permission for the other.
  if (driver === undefined || guest === undefined || (incarnation !== undefined && guest.incarnation !== incarnation))
    throw new ApiError('NotFound', `instance ${instanceId} has no guest on this host`);
  const session = url.searchParams.get('session');
  // Console and screen may be opened while the guest is suspended; a command or a connection would hang.
  if (guest.state === 'suspended' && (kind === 'exec' ? session === null : kind !== 'console' && kind !== 'vnc'))
    throw new ApiError('Conflict', 'it is suspended, and answers nothing until it goes on', {
      details: { reason: 'Suspended' },
    });
  if (guest.state !== 'running' && guest.state !== 'suspended' && kind !== 'console' && session === null)
    throw new ApiError('Conflict', `the guest of instance ${instanceId} does not run: it is ${guest.state}`);
  const lacks = (what: string): ApiError =>
    new ApiError('Conflict', `the driver ${driver.name} has no ${what} for its guests`);
  const { access } = driver;
  if (kind === 'console') {
    if (access?.typeInto === undefined)
      throw new ApiError('Conflict', `guests of the driver ${driver.name} have no console to attach to`, {
        details: { reason: 'NoConsole' },
      });
    const offset = await beginOf(driver, url, instanceId);
    return {
      serve: (conversation) => serveConsole(conversation, { driver, clock: parts.clock, instanceId, offset }),
    };
  }
  if (kind === 'exec') {
    const { exec, copy } = access ?? {};
    if (session !== null) {
      const known = parts.sessions.find(instanceId, session);
      return { serve: (conversation) => known.attach(conversation, numberOf(url, 'received') ?? 0) };
    }
    return {
      async serve(conversation) {
        const request = await requestOf(conversation);
        const begun = await parts.sessions.begin(instanceId, async () => {
          if ('copy' in request && copy !== undefined) return copy(instanceId, request);
          if (!('copy' in request) && exec !== undefined) return exec(instanceId, request);
          const what = 'copy' in request ? 'copy files' : 'run commands';
          throw new NeedsSsh(`the driver ${driver.name} has no way to ${what} in its guests`);
        });
        await begun.attach(conversation, 0);
      },
    };
  }
  if (kind === 'vnc' && access?.screen === undefined) throw lacks('screen');
  if (kind !== 'vnc' && access?.dial === undefined) throw lacks('way to their ports');
  const stream = await (kind === 'vnc' ? access?.screen?.(instanceId) : access?.dial?.(instanceId, portOf(port ?? '')));
  if (stream === undefined) return undefined;
  return {
    abandon: () => void stream.destroy(),
    serve(conversation) {
      // A guest that ends may leave its connections half open, like one that has only closed its sending side.
      driver.watch((changed) => {
        if (changed === instanceId && !runs(driver, guest)) conversation.end();
      }, conversation.over);
      const { carried = () => {} } = parts;
      return carry(conversation, stream, { halfOpen: kind !== 'vnc', carried });
    },
  };
}

function runs(driver: Driver, { instanceId, incarnation }: Guest): boolean {
  const now = driver.guests().find((guest) => guest.instanceId === instanceId);
  return now?.incarnation === incarnation && (now.state === 'running' || now.state === 'suspended');
}

/** Accepts the client and serves it. Never rejects: a failure is reported to the client, or ends the stream. */
export async function serveWay(
  way: Way,
  {
    stream,
    headers,
    clock,
    log,
    nameOf,
  }: {
    readonly stream: Duplex;
    readonly clock: Clock;
    readonly headers: IncomingHttpHeaders;
    readonly log: Logger;
    readonly nameOf?: NameOf | undefined;
  },
): Promise<void> {
  const socket = acceptWebSocket(stream, headers);
  if (socket === undefined) return way.abandon?.();
  const conversation = converse(socket);
  void pingWhileOpen(socket, clock, conversation.over);
  try {
    await way.serve(conversation);
  } catch (error) {
    const { code, message, details } = refusalOf(error, log, nameOf);
    const reason = isRecord(details) && typeof details['reason'] === 'string' ? { reason: details['reason'] } : {};
    await conversation.tell({ type: 'error', code, message, ...reason }).catch(() => {}); // the client has disconnected
  } finally {
    conversation.end();
  }
}

/** Far below the time after which the control plane closes a connection on which nothing passes. */
const pingMs = 30_000;

/** The answers are not waited for: a client that is slow to read answers late. One that is gone is found by TCP, which must repeat them. */
async function pingWhileOpen(socket: WebSocket, clock: Clock, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await sleep(clock, pingMs, over);
    if (!over.aborted && socket.readyState === socket.OPEN) socket.ping();
  }
}

async function requestOf(conversation: Conversation): Promise<ExecRequest | CopyRequest> {
  for await (const message of conversation.messages()) {
    if (typeof message !== 'string') break;
    const asked = jsonOf(message);
    return isRecord(asked) && 'copy' in asked ? parse(CopyRequest, asked) : parse(ExecRequest, asked);
  }
  throw new ApiError('InvalidRequest', 'the first message must say which command to run, as JSON');
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ApiError('InvalidRequest', 'the first message must say which command to run, as JSON', { cause });
  }
}

/** The start position in the console: an offset, or this many bytes before the end. */
async function beginOf(driver: Driver, url: URL, instanceId: string): Promise<number> {
  const offset = numberOf(url, 'offset');
  if (offset !== undefined) return offset;
  const { size } = await driver.readLog(instanceId, Number.MAX_SAFE_INTEGER, 0);
  return Math.max(0, size - (numberOf(url, 'history') ?? 0));
}

function portOf(text: string): number {
  const port = Number(text);
  if (port >= 1 && port <= 65_535) return port;
  throw new ApiError('InvalidRequest', `port must be from 1 to 65535, not ${text}`, { field: 'port' });
}

export function numberOf(url: URL, field: string): number | undefined {
  const text = url.searchParams.get(field);
  if (text === null) return undefined;
  const value = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new ApiError('InvalidRequest', `${field} must be a whole number`, { field });
}
