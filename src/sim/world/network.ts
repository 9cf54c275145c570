// The false network between clients and control planes: it finds the route as the HTTP server does, and may delay, lose, repeat and
// reorder messages, cut and stall streams, and part hosts from the rest. It never looks into what it carries.
//
//   fetch ── request ──▶ endpoint: allow, handle ── answer ──▶ client      each arrow: a delay, or lost
//                              └── lines ── piece, piece, … ──▶ client      in order, until cut, stalled or ended

import type { Prng } from '../../base/prng.ts';
import type { FetchLike, FetchResponse } from '../../api/client.ts';
import type { Identity } from '../../core/access/access.ts';
import type { Chances } from './chances.ts';
import { allow, toApiError } from '../../server/http/exchange.ts';
import { parseJsonBody } from '../../server/http/json-body.ts';
import { type Answer, findRoute, Query, type Route } from '../../server/http/route.ts';
import { createInbox, type Inbox } from './inbox.ts';
import type { ProcessClock } from './process-clock.ts';
import type { Tally } from '../batch/tally.ts';
import type { Timeline } from './timeline.ts';
import { drawDelayMs, type Weather } from './weather.ts';

/** One life of a client. */
export interface Peer {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly identity: Identity;
  /** The host it is on, whose partitions it shares; undefined: beside the control planes. */
  readonly host?: string;
  /** How long it waits for an answer; default: longer than any call within Berth waits itself. */
  readonly answerTimeoutMs?: number;
}

/** Where a control plane listens. It stays while processes behind it come and go. */
export interface Endpoint {
  readonly name: string;
}

export type Partition = 'both' | 'to-server' | 'from-server';

export interface NetworkOptions {
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly weather: () => Weather['network'];
  readonly tally: Tally;
  readonly chances: Chances;
  /** Whether each client stays with one control plane while that answers, or every request may go to another. */
  readonly sticky: boolean;
  /** A request that a control plane is about to handle. */
  readonly onRequest: (request: SeenRequest) => void;
  /** A control plane answered 500: a fault that nobody foresaw. */
  readonly onInternal: (error: unknown, request: SeenRequest) => void;
}

export interface SeenRequest {
  readonly peer: string;
  readonly method: string;
  readonly path: string;
  /** JSON; undefined when there is none. */
  readonly bodyText: string | undefined;
}

export interface Network {
  endpoint(name: string): Endpoint;
  /** A control plane begins to listen. */
  listen(endpoint: Endpoint, clock: ProcessClock, routes: readonly Route[]): void;
  /** It is gone: what is open breaks. */
  hangUp(endpoint: Endpoint): void;
  fetchFor(peer: Peer): FetchLike;
  /** A client's process is gone; with its whole host gone, nobody tells the control planes. */
  leave(peer: Peer, how: 'process' | 'host'): void;
  part(host: string, partition: Partition): void;
  heal(host: string): void;
}

const answerTimeoutMsDefault = 35_000;
/** TCP keep-alive: how long a server takes to see that a client vanished. */
const keepAliveMs = 45_000;

interface Listener {
  readonly endpoint: Endpoint;
  readonly clock: ProcessClock;
  readonly routes: readonly Route[];
  readonly exchanges: Set<Exchange>;
}

/** One request and all that comes of it. */
interface Exchange {
  readonly peer: Peer;
  readonly gone: AbortController;
  /** Ends it at the client, if it has not ended. */
  readonly fail: (error: Error) => void;
  /** Nothing arrives any more and nobody notices. */
  stalled: boolean;
  inbox: Inbox | undefined;
  lastArrivalMs: number;
}

export function createNetwork(options: NetworkOptions): Network {
  const { timeline, prng, tally } = options;
  const weather = (): Weather['network'] => options.weather();
  const endpoints: Endpoint[] = [];
  const listeners = new Map<Endpoint, Listener>();
  const partitions = new Map<string, Partition>();
  const chosen = new Map<string, Endpoint>();
  const exchangesOf = new Map<Peer, Set<Exchange>>();

  const hit = (kind: 'requestLost' | 'answerLost' | 'duplicate' | 'slow' | 'streamCut' | 'streamStalled'): boolean =>
    options.chances.befalls(`network-${kind}`, weather()[kind], prng);
  const delayMs = (): number => {
    const { delayMsMin, delayMsMean } = weather();
    const usualMs = drawDelayMs(prng, { minMs: delayMsMin, meanMs: delayMsMean });
    return hit('slow') ? 200 + 100 * usualMs : usualMs;
  };
  const parted = (peer: Peer, direction: 'to-server' | 'from-server'): boolean => {
    const partition = peer.host === undefined ? undefined : partitions.get(peer.host);
    if (partition !== 'both' && partition !== direction) return false;
    tally.hit('partition-loss');
    return true;
  };

  /** Any for each request, or the same until it does not answer. */
  const choose = (peer: Peer): Endpoint | undefined => {
    const former = chosen.get(peer.name);
    if (options.sticky && former && listeners.has(former)) return former;
    const up = endpoints.filter((endpoint) => listeners.has(endpoint));
    const next = (up.length > 0 ? up : endpoints)[prng.below(Math.max(1, up.length))];
    if (next) chosen.set(peer.name, next);
    return next;
  };

  const fetchFor =
    (peer: Peer): FetchLike =>
    (url, init) => {
      const { promise, resolve, reject } = Promise.withResolvers<FetchResponse>();
      const endpoint = choose(peer);
      const listener = endpoint && listeners.get(endpoint);
      const { signal } = init;
      if (signal?.aborted) {
        reject(new Error('the call was given up'));
        return promise;
      }
      if (listener === undefined) {
        peer.clock.deliver(delayMs(), () => reject(new Error('connection refused')));
        return promise;
      }
      const finish = (): void => {
        timer.cancel();
        signal?.removeEventListener('abort', giveUp);
        listener.exchanges.delete(exchange);
        exchangesOf.get(peer)?.delete(exchange);
      };
      const exchange: Exchange = {
        peer,
        gone: new AbortController(),
        fail(error) {
          finish();
          reject(error);
          exchange.inbox?.fail(error);
        },
        stalled: false,
        inbox: undefined,
        lastArrivalMs: 0,
      };
      const giveUp = (): void => {
        exchange.fail(new Error('the call was given up'));
        tellServer(listener, exchange);
      };
      const { answerTimeoutMs = answerTimeoutMsDefault } = peer;
      const timer = peer.clock.setTimer(answerTimeoutMs, () => {
        exchange.fail(new Error(`no answer within ${answerTimeoutMs} ms`));
        tellServer(listener, exchange);
      });
      signal?.addEventListener('abort', giveUp);
      listener.exchanges.add(exchange);
      remember(peer, exchange);

      const path = new URL(url);
      const seen: SeenRequest = {
        peer: peer.name,
        method: init.method,
        path: path.pathname,
        bodyText: typeof init.body === 'string' ? init.body : undefined, // nothing here sends bytes
      };
      const arrive = (at: Listener, on: Exchange): Promise<Arrival> => {
        options.onRequest(seen);
        return perform(at, on, seen, { query: path.searchParams, headers: init.headers, peer });
      };
      const receive = async (): Promise<void> => {
        if (exchange.gone.signal.aborted) return;
        const arrival = await arrive(listener, exchange);
        if (exchange.gone.signal.aborted) return void arrival.pieces?.return?.();
        answer(listener, exchange, arrival, (response, ended) => {
          if (ended) finish();
          timer.cancel();
          resolve(response);
        });
      };
      if (!parted(peer, 'to-server') && !hit('requestLost')) listener.clock.ask(delayMs(), () => void receive());
      if (init.method !== 'GET' && hit('duplicate')) repeatLater(peer, arrive);
      return promise;
    };

  /** A proxy on the way repeats a request, perhaps at another control plane, perhaps much later; its answer is nobody's. */
  const repeatLater = (peer: Peer, arrive: (at: Listener, on: Exchange) => Promise<Arrival>): void => {
    const laterMs = delayMs() + prng.below(prng.chance(1, 2) ? 20_000 : 500);
    timeline.schedule(laterMs, () => {
      const up = [...listeners.values()];
      const at = up[prng.below(Math.max(1, up.length))];
      if (at === undefined) return;
      const nobody: Exchange = {
        peer,
        gone: new AbortController(),
        fail() {},
        stalled: true,
        inbox: undefined,
        lastArrivalMs: 0,
      };
      at.clock.ask(0, () => void arrive(at, nobody));
    });
  };

  const remember = (peer: Peer, exchange: Exchange): void => {
    const all = exchangesOf.get(peer) ?? new Set();
    exchangesOf.set(peer, all.add(exchange));
  };

  const tellServer = (listener: Listener, exchange: Exchange): void => {
    const silent = exchange.stalled || parted(exchange.peer, 'to-server');
    listener.clock.deliver(silent ? keepAliveMs : delayMs(), () => exchange.gone.abort());
  };

  const tellClient = (exchange: Exchange, error: Error): void => {
    if (exchange.stalled || parted(exchange.peer, 'from-server')) return;
    exchange.peer.clock.deliver(delayMs(), () => exchange.fail(error));
  };

  const perform = async (
    listener: Listener,
    exchange: Exchange,
    seen: SeenRequest,
    rest: { readonly query: URLSearchParams; readonly headers: Record<string, string>; readonly peer: Peer },
  ): Promise<Arrival> => {
    try {
      const { route, params } = findRoute(listener.routes, seen.method, seen.path);
      const given = await route.handle({
        params,
        query: new Query(rest.query),
        body: parseJsonBody(seen.bodyText ?? '') ?? {},
        headers: rest.headers,
        identity: allow(route, rest.peer.identity, params['host']),
        signal: exchange.gone.signal,
      });
      return await arrivalOf(given);
    } catch (error) {
      const told = toApiError(error);
      if (told.code === 'Internal') options.onInternal(told.cause ?? told, seen);
      return { status: told.status, text: JSON.stringify(told.toBody()) };
    }
  };

  /** Back over the network: the whole answer, or the first piece and then each as it comes. */
  const answer = (
    listener: Listener,
    exchange: Exchange,
    arrival: Arrival,
    give: (response: FetchResponse, ended: boolean) => void,
  ): void => {
    const { peer } = exchange;
    if (parted(peer, 'from-server') || hit('answerLost')) {
      exchange.stalled = true;
      arrival.pieces?.return?.().catch(() => {});
      return;
    }
    if (arrival.pieces === undefined) {
      const { status, text } = arrival;
      peer.clock.deliver(delayMs(), () => give(responseOf(status, text, null), true));
      return;
    }
    const { status, first, pieces } = arrival;
    const inbox = createInbox(() => {
      exchange.fail(new Error('the stream was left'));
      tellServer(listener, exchange);
    });
    exchange.inbox = inbox;
    inOrder(exchange, () => give(responseOf(status, '', inbox.body), false));
    if (hit('streamCut')) {
      timeline.schedule(prng.below(30_000), () => {
        tellClient(exchange, new Error('the stream was cut'));
        tellServer(listener, exchange);
      });
    } else if (hit('streamStalled')) {
      timeline.schedule(prng.below(30_000), () => {
        exchange.stalled = true;
      });
    }
    void pump(exchange, first, pieces, inbox);
  };

  const pump = async (
    exchange: Exchange,
    first: IteratorResult<Uint8Array>,
    pieces: AsyncIterator<Uint8Array>,
    inbox: Inbox,
  ): Promise<void> => {
    try {
      for (let piece = first; piece.done !== true; piece = await pieces.next()) {
        if (exchange.gone.signal.aborted) return;
        const { value } = piece;
        inOrder(exchange, () => inbox.push(value));
      }
    } catch (error) {
      const body = encode(toApiError(error).toBody());
      inOrder(exchange, () => inbox.push(body));
    } finally {
      inOrder(exchange, () => {
        inbox.end();
        exchange.fail(new Error('the stream has ended')); // forgets the exchange; the inbox has ended already
      });
      await pieces.return?.();
    }
  };

  /** At the client, after all that was sent before on this stream. */
  const inOrder = (exchange: Exchange, deliver: () => void): void => {
    if (parted(exchange.peer, 'from-server')) exchange.stalled = true;
    if (exchange.stalled) return;
    const arrivalMs = Math.max(exchange.lastArrivalMs + 0.001, timeline.nowMs + delayMs());
    exchange.lastArrivalMs = arrivalMs;
    exchange.peer.clock.deliver(arrivalMs - timeline.nowMs, () => {
      if (!exchange.stalled) deliver();
    });
  };

  return {
    endpoint(name) {
      const endpoint = { name };
      endpoints.push(endpoint);
      return endpoint;
    },
    listen(endpoint, clock, routes) {
      listeners.set(endpoint, { endpoint, clock, routes, exchanges: new Set() });
    },
    hangUp(endpoint) {
      const listener = listeners.get(endpoint);
      listeners.delete(endpoint);
      for (const exchange of listener?.exchanges ?? []) tellClient(exchange, new Error('connection reset'));
    },
    fetchFor,
    leave(peer, how) {
      for (const exchange of exchangesOf.get(peer) ?? []) {
        if (how === 'host') exchange.stalled = true;
        for (const listener of listeners.values())
          if (listener.exchanges.delete(exchange)) tellServer(listener, exchange);
      }
      exchangesOf.delete(peer);
    },
    part: (host, partition) => void partitions.set(host, partition),
    heal: (host) => void partitions.delete(host),
  };
}

/** What a control plane gives back, before the network has had its way with it. */
type Arrival =
  | { readonly status: number; readonly text: string; readonly pieces?: undefined }
  | {
      readonly status: number;
      readonly first: IteratorResult<Uint8Array>;
      readonly pieces: AsyncIterator<Uint8Array>;
    };

/** As the HTTP server does it: the first piece decides; until it is there, a failure can still be told by the status. */
async function arrivalOf(answer: Answer): Promise<Arrival> {
  if ('json' in answer) return { status: answer.status, text: JSON.stringify(answer.json) };
  const stream = 'lines' in answer ? encodeLines(answer.lines) : answer.bytes;
  const pieces = stream[Symbol.asyncIterator]();
  return { status: answer.status, first: await pieces.next(), pieces };
}

async function* encodeLines(lines: AsyncIterable<unknown>): AsyncIterable<Uint8Array> {
  for await (const line of lines) yield encode(line);
}

const encoder = new TextEncoder();

function encode(line: unknown): Uint8Array {
  return encoder.encode(`${JSON.stringify(line)}\n`);
}

function responseOf(status: number, text: string, body: AsyncIterable<Uint8Array> | null): FetchResponse {
  return { status, headers: { get: () => null }, body, text: () => Promise.resolve(text) };
}
