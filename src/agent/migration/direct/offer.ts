// The source of a move: connects to the target, and serves only the files of this move over the connection. Reconnects when the connection breaks.

import { constants, performServerHandshake, type ServerHttp2Stream } from 'node:http2';
import { connect, type TLSSocket } from 'node:tls';
import { ApiError } from '../../../api/errors.ts';
import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { answerMove, moveAsked } from '../answer-move.ts';
import type { DirectOptions, Offer } from './contract.ts';
import { helloOf } from './hello.ts';
import { isPeer, windowBytes } from './peer.ts';

const retry = { delayMsMin: 200, delayMsMax: 5_000 };
const dialTimeoutMs = 10_000;

/** Until `signal` aborts. Never rejects. */
export async function holdOffer(options: DirectOptions, offer: Offer, signal: AbortSignal): Promise<void> {
  const { clock, prng, log } = options;
  const about = { move: offer.move.id, address: offer.at.address, port: offer.at.port };
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      const socket = await dial(options, offer, signal);
      log.debug('connected for a move', about);
      attempt = 0;
      await serve(socket, { options, offer, signal });
    } catch (error) {
      if (!signal.aborted)
        log.info('cannot connect to the host that a guest moves to; its files pass through the control plane', {
          ...about,
          error: describeError(error),
        });
    }
    await sleep(clock, backoffMs(attempt, retry, prng), signal);
  }
}

/** A connection to the target itself. */
export async function dial(
  { identity, clock }: Pick<DirectOptions, 'identity'> & { readonly clock: Clock },
  { move, peer, at, name }: Pick<Offer, 'move' | 'peer' | 'at'> & { readonly name?: string },
  signal: AbortSignal,
): Promise<TLSSocket> {
  const socket = connect({
    ...{ host: at.address, port: at.port, key: identity.key, cert: identity.certificate },
    // Its certificate is self-signed; the fingerprint is compared.
    ...{ rejectUnauthorized: false, minVersion: 'TLSv1.3' },
  });
  const { promise, resolve: connected, reject } = Promise.withResolvers<void>();
  const giveUp = (): void => reject(new Error('given up'));
  const limit = clock.setTimer(dialTimeoutMs, () => reject(new Error(`no answer within ${dialTimeoutMs} ms`)));
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  socket.once('secureConnect', connected);
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('the connection was closed')));
  try {
    await promise;
    if (!isPeer(socket, peer)) throw new Error('another host answers at this address');
    // Flushed before HTTP/2 takes over the socket: Node crashes if our write is still pending then.
    await new Promise<void>((resolve) =>
      socket.write(helloOf({ id: move.id, ...(name === undefined ? {} : { name }) }), () => resolve()),
    );
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    limit.cancel();
    signal.removeEventListener('abort', giveUp);
  }
}

/** Sends the progress, and finally whether everything was sent. */
async function send(stream: ServerHttp2Stream, offer: Offer, options: DirectOptions): Promise<void> {
  const gone = new AbortController();
  stream.on('close', () => gone.abort());
  stream.respond({ [constants.HTTP2_HEADER_STATUS]: 200 });
  const say = (what: object): void => {
    if (!stream.destroyed && !stream.writableEnded) stream.write(`${JSON.stringify(what)}\n`);
  };
  try {
    const dialAs = (name: string) => dial(options, { ...offer, name }, gone.signal);
    const stillMs = await offer.outgoing.send(offer.move, { dial: dialAs, onProgress: say }, gone.signal);
    say({ sent: true, stillMs });
  } catch (error) {
    say(asApiError(error).toBody());
  }
  stream.end();
}

function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError('Internal', describeError(error));
}

/** Resolves when the connection has ended. */
interface Serving {
  readonly options: DirectOptions;
  readonly offer: Offer;
  readonly signal: AbortSignal;
}

function serve(socket: TLSSocket, serving: Serving): Promise<void> {
  const { signal } = serving;
  return new Promise((resolve) => {
    const session = performServerHandshake(socket, { settings: { initialWindowSize: windowBytes } });
    session.setLocalWindowSize(windowBytes);
    const end = (): void => session.destroy();
    signal.addEventListener('abort', end, { once: true });
    session.on('error', end);
    session.on('close', () => {
      signal.removeEventListener('abort', end);
      socket.destroy();
      resolve();
    });
    session.on('stream', (stream, { ':path': path = '', ':method': method = '' }) => {
      stream.on('error', () => {}); // the target asks again
      void answer(stream, serving, { path, method });
    });
    if (signal.aborted) end();
  });
}

async function answer(
  stream: ServerHttp2Stream,
  { offer, options }: Serving,
  { path, method }: { readonly path: string; readonly method: string },
): Promise<void> {
  const { move, outgoing } = offer;
  try {
    if (method === 'POST' && path === `/guests/${move.instanceId}/moves/${move.id}/live`)
      return await send(stream, offer, options);
    const asked = moveAsked(new URL(path, 'http://agent'));
    if (method !== 'GET' || asked?.move.id !== move.id || asked.move.instanceId !== move.instanceId)
      throw new ApiError('NotFound', 'there is no such route for a move');
    await answerMove(outgoing, stream, asked);
  } catch (error) {
    if (stream.destroyed || stream.closed) return;
    if (stream.headersSent) return void stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    const told = asApiError(error);
    stream.respond({ [constants.HTTP2_HEADER_STATUS]: told.status });
    stream.end(JSON.stringify(told.toBody()));
  }
}
