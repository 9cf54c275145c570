// What the control plane may ask of this host over the line. It is not trusted blindly: every id and number is checked here.
//
//   GET  /guests/{instanceId}/disk                                      a copy of the disk as one qcow2 file, of a guest that does not run
//   GET  /guests/{instanceId}/log?offset=N&follow=true|false&limit=N    the console, raw; `berth-log-offset` says where it begins
//   GET  /guests/{instanceId}/moves/...                                 the files of a guest that moves: migration/answer-move.ts
//   POST /guests/{instanceId}/...                                       a client's way into the guest: access/access-routes.ts

import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { ApiError } from '../../api/errors.ts';
import type { Carried } from '../../base/carried.ts';
import type { Clock } from '../../base/clock.ts';
import { drained } from '../../base/drained.ts';
import type { Logger } from '../../base/log.ts';
import { serveWay, wayInto } from '../access/access-routes.ts';
import type { ExecSessions } from '../access/exec-sessions.ts';
import type { Driver } from '../drivers/driver.ts';
import { answerMove, bytesOf, moveAsked } from '../migration/answer-move.ts';
import type { Outgoing } from '../migration/move.ts';
import { followLog, type LogRange } from '../access/guest-log.ts';
import type { NameOf } from '../host/named.ts';
import { refusalOf } from '../access/refusal.ts';

export interface LinkRoutes {
  readonly drivers: readonly Driver[];
  readonly sessions: ExecSessions;
  readonly clock: Clock;
  readonly log: Logger;
  /** What those who ask call an instance or a volume. */
  readonly nameOf?: NameOf;
  /** Absent: nothing moves from this host. */
  readonly outgoing?: Outgoing | undefined;
  /** Called with the number of bytes that pass to and from guests. */
  readonly carried?: Carried;
}

export interface LinkRequest {
  readonly stream: ServerHttp2Stream;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

/** Never rejects: what goes wrong is answered, or ends the stream. */
export async function answerRequest(routes: LinkRoutes, { stream, method, path, headers }: LinkRequest): Promise<void> {
  try {
    const url = new URL(path, 'http://agent');
    if (method === 'POST') {
      const way = await wayInto(routes, url);
      if (way === undefined) throw new ApiError('NotFound', 'there is no such route on a host');
      if (stream.destroyed || stream.closed) return way.abandon?.(); // the client left meanwhile
      stream.respond({ [constants.HTTP2_HEADER_STATUS]: 200 });
      return await serveWay(way, { stream, headers, clock: routes.clock, log: routes.log, nameOf: routes.nameOf });
    }
    if (method !== 'GET') throw new ApiError('MethodNotAllowed', `${method} is not possible here`);
    const asked = routes.outgoing && moveAsked(url);
    if (routes.outgoing && asked) return await answerMove(routes.outgoing, stream, asked);
    const [, instanceId, what] = /^\/guests\/(inst_[0-9a-z]{26})\/(log|disk)$/.exec(url.pathname) ?? [];
    if (instanceId === undefined) throw new ApiError('NotFound', 'there is no such route on a host');
    if (what === 'disk') await sendDisk(routes, stream, instanceId);
    else await sendLog(routes, stream, rangeOf(instanceId, url.searchParams));
  } catch (error) {
    refuse(stream, refusalOf(error, routes.log, routes.nameOf));
  }
}

function driverOf({ drivers }: LinkRoutes, wanted: string): Driver {
  const driver = drivers.find((each) => each.guests().some(({ instanceId }) => instanceId === wanted));
  if (driver === undefined) throw new ApiError('NotFound', `instance ${wanted} has no guest on this host`);
  return driver;
}

async function sendDisk(routes: LinkRoutes, stream: ServerHttp2Stream, instanceId: string): Promise<void> {
  const driver = driverOf(routes, instanceId);
  const state = driver.guests().find((guest) => guest.instanceId === instanceId)?.state;
  if (driver.exportDisk === undefined)
    throw new ApiError('Conflict', `guests of the driver "${driver.name}" have no disk that could be copied`);
  if (state !== 'stopped' && state !== 'exited')
    throw new ApiError('Conflict', `its guest is ${state ?? 'gone'}, and only a stopped one's disk can be copied`, {
      details: { reason: 'NotStopped' },
    });
  const gone = new AbortController();
  stream.on('close', () => gone.abort());
  const { file, sizeBytes } = await driver.exportDisk(instanceId, gone.signal);
  try {
    stream.respond({
      [constants.HTTP2_HEADER_STATUS]: 200,
      [constants.HTTP2_HEADER_CONTENT_TYPE]: 'application/octet-stream',
      'berth-disk-bytes': String(sizeBytes),
    });
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(diskPieceBytes), 0, diskPieceBytes, null);
      if (bytesRead === 0 || stream.destroyed || stream.closed) break;
      if (!stream.write(buffer.subarray(0, bytesRead))) await drained(stream);
    }
  } finally {
    await file.close();
  }
  stream.end();
}

const diskPieceBytes = 256 * 1024;

async function sendLog(routes: LinkRoutes, stream: ServerHttp2Stream, range: LogRange): Promise<void> {
  const { clock } = routes;
  const driver = driverOf(routes, range.instanceId);
  const gone = new AbortController();
  stream.on('close', () => gone.abort());
  let next: number | undefined;
  for await (const { offset, data } of followLog({ driver, clock, range }, gone.signal)) {
    if (stream.destroyed || stream.closed) return;
    // The start of the log was dropped while it was read: the next request learns where it continues.
    if (range.follow && next !== undefined && offset !== next) return breakOff(stream);
    next = offset + data.length;
    if (!stream.headersSent) {
      stream.respond({
        [constants.HTTP2_HEADER_STATUS]: 200,
        [constants.HTTP2_HEADER_CONTENT_TYPE]: 'application/octet-stream',
        'berth-log-offset': String(offset),
      });
    }
    // A reader that does not read costs no memory here: the log waits in its file.
    if (data.length > 0 && !stream.write(data)) await drained(stream);
  }
  stream.end();
}

function rangeOf(instanceId: string, query: URLSearchParams): LogRange {
  const follow = query.get('follow') ?? 'false';
  if (follow !== 'true' && follow !== 'false') {
    throw new ApiError('InvalidRequest', 'follow must be true or false', { field: 'follow' });
  }
  const limit = query.has('limit') ? bytesOf(query, 'limit') : undefined;
  return {
    instanceId,
    offset: bytesOf(query, 'offset'),
    follow: follow === 'true',
    ...(limit === undefined ? {} : { limit }),
  };
}

/** Not by `close`, which says first that this is the end. */
function breakOff(stream: ServerHttp2Stream): void {
  stream.once('error', () => {}); // it is ours
  stream.destroy(new Error('broken off'));
}

function refuse(stream: ServerHttp2Stream, error: ApiError): void {
  if (stream.destroyed || stream.closed) return;
  // Too late for a status: the reader must see that this is not the end of the log.
  if (stream.headersSent) return breakOff(stream);
  stream.respond({
    [constants.HTTP2_HEADER_STATUS]: error.status,
    [constants.HTTP2_HEADER_CONTENT_TYPE]: 'application/json',
  });
  stream.end(JSON.stringify(error.toBody()));
}
