// The false network between clients and control planes. It delays, loses, repeats and reorders messages, cuts and stalls streams, and
// separates hosts from the rest. It never reads what it carries.
//
//   fetch ── request ──▶ endpoint: perform ── answer ──▶ client      each arrow: a delay, or lost
//                            └── lines ── piece, piece, … ──▶ client      in order, until cut, stalled or ended

import type { FetchLike, FetchResponse } from '../../api/client/client.ts';
import { type Arrival, perform, type Request } from './arrival.ts';
import { Exchange, type Listener } from './exchange.ts';
import type { Endpoint, Partition, Peer, SeenRequest } from './peer.ts';
import type { ProcessClock } from './process-clock.ts';
import { Transit, type TransitOptions } from './transit.ts';

export interface NetworkOptions extends TransitOptions {
  /** Whether each client stays with one control plane while that answers, or every request may go to another. */
  readonly sticky: boolean;
  /** Called before a control plane handles a request. */
  readonly onRequest: (request: SeenRequest) => void;
  /** A control plane answered 500: an error that the product does not expect. */
  readonly onInternal: (error: unknown, request: SeenRequest) => void;
}

export class Network {
  readonly #options: NetworkOptions;
  readonly #transit: Transit;
  readonly #endpoints: Endpoint[] = [];
  readonly #listeners = new Map<Endpoint, Listener>();
  /** The control plane that each client used last, by the client's name. */
  readonly #chosen = new Map<string, Endpoint>();
  readonly #exchangesOf = new Map<Peer, Set<Exchange>>();

  constructor(options: NetworkOptions) {
    this.#options = options;
    this.#transit = new Transit(options);
  }

  endpoint(name: string): Endpoint {
    const endpoint = { name };
    this.#endpoints.push(endpoint);
    return endpoint;
  }

  /** A control plane begins to listen. */
  listen(endpoint: Endpoint, clock: ProcessClock, served: Pick<Listener, 'routes' | 'snapshot'>): void {
    this.#listeners.set(endpoint, { endpoint, clock, ...served, exchanges: new Set() });
  }

  /** The control plane is gone: open exchanges break. */
  hangUp(endpoint: Endpoint): void {
    const listener = this.#listeners.get(endpoint);
    this.#listeners.delete(endpoint);
    for (const exchange of listener?.exchanges ?? []) exchange.tellClient(new Error('connection reset'));
  }

  /** A client's process is gone. When its whole host is gone, the control planes only notice by keep-alive. */
  leave(peer: Peer, how: 'process' | 'host'): void {
    for (const exchange of this.#exchangesOf.get(peer) ?? []) {
      if (how === 'host') exchange.stall();
      for (const { exchanges } of this.#listeners.values()) if (exchanges.delete(exchange)) exchange.tellServer();
    }
    this.#exchangesOf.delete(peer);
  }

  part(host: string, partition: Partition): void {
    this.#transit.part(host, partition);
  }

  heal(host: string): void {
    this.#transit.heal(host);
  }

  fetchFor(peer: Peer): FetchLike {
    return (url, init) => this.#send(peer, url, init);
  }

  #send(peer: Peer, url: string, init: Parameters<FetchLike>[1]): Promise<FetchResponse> {
    const endpoint = this.#choose(peer);
    const listener = endpoint && this.#listeners.get(endpoint);
    const { signal } = init;
    if (signal?.aborted) return Promise.reject(new Error('the call was given up'));
    if (listener === undefined) return this.#refuse(peer);
    const exchange = new Exchange({
      peer,
      listener,
      transit: this.#transit,
      signal,
      onFinish: (finished) => this.#exchangesOf.get(peer)?.delete(finished),
    });
    this.#remember(peer, exchange);
    const { searchParams, pathname } = new URL(url);
    const bodyText = typeof init.body === 'string' ? init.body : undefined;
    const bodyBytes = typeof init.body === 'string' ? undefined : init.body;
    const seen = { peer: peer.name, method: init.method, path: pathname, bodyText, bodyBytes };
    const request = { seen, query: searchParams, headers: init.headers, peer };
    const transit = this.#transit;
    if (!transit.parted(peer, 'to-server') && !transit.hit('requestLost'))
      listener.clock.ask(transit.delayMs(), () => void this.#receive(listener, exchange, request));
    if (init.method !== 'GET' && transit.hit('duplicate')) this.#repeatLater(request);
    return exchange.response;
  }

  #refuse(peer: Peer): Promise<FetchResponse> {
    return new Promise((_, reject) => {
      peer.clock.deliver(this.#transit.delayMs(), () => reject(new Error('connection refused')));
    });
  }

  /** Any control plane for each request, or the same until it does not answer. */
  #choose(peer: Peer): Endpoint | undefined {
    const former = this.#chosen.get(peer.name);
    if (this.#options.sticky && former && this.#listeners.has(former)) return former;
    const up = this.#endpoints.filter((endpoint) => this.#listeners.has(endpoint));
    const next = (up.length > 0 ? up : this.#endpoints)[this.#transit.prng.below(Math.max(1, up.length))];
    if (next) this.#chosen.set(peer.name, next);
    return next;
  }

  async #receive(listener: Listener, exchange: Exchange, request: Request): Promise<void> {
    if (exchange.gone.aborted) return;
    const arrival = await this.#perform(listener, request, exchange.gone);
    if (exchange.gone.aborted) return void arrival.pieces?.return?.();
    exchange.answer(arrival);
  }

  /** A proxy on the way repeats a request, perhaps at another control plane, perhaps much later. No client reads that answer. */
  #repeatLater(request: Request): void {
    const { prng, timeline } = this.#transit;
    const laterMs = this.#transit.delayMs() + prng.below(prng.chance(1, 2) ? 20_000 : 500);
    timeline.schedule(laterMs, () => {
      const up = [...this.#listeners.values()];
      const at = up[prng.below(Math.max(1, up.length))];
      at?.clock.ask(0, () => void this.#perform(at, request, new AbortController().signal));
    });
  }

  #perform({ routes, snapshot }: Listener, request: Request, signal: AbortSignal): Promise<Arrival> {
    const { onRequest, onInternal } = this.#options;
    onRequest(request.seen);
    return perform(request, { routes, snapshot, signal, onInternal: (error) => onInternal(error, request.seen) });
  }

  #remember(peer: Peer, exchange: Exchange): void {
    const all = this.#exchangesOf.get(peer) ?? new Set();
    this.#exchangesOf.set(peer, all.add(exchange));
  }
}
