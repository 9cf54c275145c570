// The line to the control plane: the agent dials out, so that hosts need no open port, and then serves HTTP/2 on that same
// connection. Only the control plane that it dialled can ask there. It opens the line again whenever it breaks.

import { request as requestPlain } from 'node:http';
import { performServerHandshake, type ServerHttp2Session } from 'node:http2';
import { request as requestSecure } from 'node:https';
import type { Duplex } from 'node:stream';
import { backoffMs } from '../../base/backoff.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { TlsTrust } from '../../base/tls/tls-fetch.ts';
import type { Prng } from '../../base/prng.ts';
import { answerRequest, type LinkRoutes } from './link-routes.ts';

export interface LinkOptions {
  /** `http://127.0.0.1:7070`, without a trailing slash. */
  readonly serverUrl: string;
  readonly token: string | undefined;
  /** Of https: servers, and by which certificate this host proves itself. Default: Node's authorities. */
  readonly trust?: () => TlsTrust;
  readonly hostName: string;
  /** The session that this line belongs to; the control plane refuses others. */
  readonly epoch: number;
  readonly routes: LinkRoutes;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Whether it matters now that there is no line to this server; default: always. */
  readonly matters?: () => boolean;
}

const dialTimeoutMs = 10_000;
const pingMs = 10_000; // also keeps proxies and NAT from forgetting the connection
const retry = { delayMsMin: 200, delayMsMax: 5000 };
const settledAfterMs = 10_000;
/** On their way on the line, for all its streams together: HTTP/2's own 64 KiB would wait for an answer after each few frames. */
const lineWindowBytes = 8 * 1024 * 1024;

/** Holds the line until `signal` aborts. Never rejects. */
export async function holdLink(options: LinkOptions, signal: AbortSignal): Promise<void> {
  const { clock, log } = options;
  for (let attempt = 0; !signal.aborted; ) {
    const beganMs = clock.monotonicMs();
    try {
      const socket = await dial(options, signal);
      log.debug('the line to the control plane is open');
      await serve(socket, options, signal);
      if (!signal.aborted) log.debug('the line to the control plane was closed');
    } catch (error) {
      if (!signal.aborted) {
        const level = (options.matters?.() ?? true) ? 'warn' : 'debug';
        log[level]('no line to the control plane; logs of guests cannot be read until there is one', {
          error: describeError(error),
        });
      }
    }
    if (clock.monotonicMs() - beganMs >= settledAfterMs) attempt = 0;
    await sleep(clock, backoffMs(attempt++, retry, options.prng), signal);
  }
}

/** A connection on which the control plane has agreed to speak the agent's protocol. */
function dial(options: LinkOptions, signal: AbortSignal): Promise<Duplex> {
  const url = new URL(`${options.serverUrl}/v1/hosts/${encodeURIComponent(options.hostName)}/link`);
  url.searchParams.set('epoch', String(options.epoch));
  const request = (url.protocol === 'https:' ? requestSecure : requestPlain)(url, {
    agent: false,
    ...(url.protocol === 'https:' ? options.trust?.() : {}),
    headers: {
      connection: 'Upgrade',
      upgrade: 'berth-agent/1',
      ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
    },
  });
  return new Promise<Duplex>((resolve, reject) => {
    const giveUp = (): void => void request.destroy(new Error('given up'));
    const limit = options.clock.setTimer(dialTimeoutMs, () => {
      request.destroy(new Error(`no answer from ${options.serverUrl} within ${dialTimeoutMs} ms`));
    });
    const settle = (): void => {
      limit.cancel();
      signal.removeEventListener('abort', giveUp);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    if (signal.aborted) giveUp();
    request.on('upgrade', (_response, socket, head) => {
      settle();
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.on('response', (response) => {
      settle();
      response.resume(); // what it says is said again by the calls that matter
      reject(new Error(`${options.serverUrl} answered ${response.statusCode} to the request for a line`));
    });
    request.on('error', (error) => {
      settle();
      reject(error);
    });
    request.end();
  });
}

/** Resolves when the connection is over, however it ended. */
function serve(socket: Duplex, options: LinkOptions, signal: AbortSignal): Promise<void> {
  const { clock, log } = options;
  return new Promise((resolve) => {
    const session = performServerHandshake(socket, {
      settings: { maxConcurrentStreams: 1024, initialWindowSize: 1 << 20 },
    });
    session.setLocalWindowSize(lineWindowBytes);
    const over = new AbortController();
    const end = (): void => session.destroy();
    signal.addEventListener('abort', end, { once: true });
    session.on('stream', (stream, headers) => {
      stream.on('error', (error) => log.debug('a stream of the line failed', { error: describeError(error) }));
      const { ':path': path = '', ':method': method = '' } = headers;
      void answerRequest(options.routes, { stream, method, path, headers });
    });
    session.on('error', (error) => log.debug('the line to the control plane failed', { error: describeError(error) }));
    session.on('close', () => {
      over.abort();
      signal.removeEventListener('abort', end);
      socket.destroy();
      resolve();
    });
    void keepAlive(session, clock, over.signal);
    if (signal.aborted) end();
  });
}

/** A peer that is gone without a word is noticed by its silence. */
async function keepAlive(session: ServerHttp2Session, clock: Clock, over: AbortSignal): Promise<void> {
  let answered = true; // outside the loop: an answer comes in a later turn of it
  for (;;) {
    await sleep(clock, pingMs, over);
    if (over.aborted) return;
    if (!answered) return session.destroy();
    answered = false;
    session.ping((error) => {
      answered = error === null;
    });
  }
}
