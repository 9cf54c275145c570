// An exchange: one request of a client and its answer, until either side ends it.

import type { Timer } from '../../base/clock.ts';
import type { FetchResponse } from '../../api/client/client.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { Route } from '../../server/http/route.ts';
import { type Arrival, pieceOfError } from './arrival.ts';
import { createInbox, type Inbox } from './inbox.ts';
import type { Endpoint, Peer } from './peer.ts';
import type { ProcessClock } from './process-clock.ts';
import type { Transit } from './transit.ts';

/** A control plane that listens. */
export interface Listener {
  readonly endpoint: Endpoint;
  readonly clock: ProcessClock;
  readonly routes: readonly Route[];
  readonly snapshot: Snapshot;
  readonly exchanges: Set<Exchange>;
}

export interface ExchangeOptions {
  readonly peer: Peer;
  readonly listener: Listener;
  readonly transit: Transit;
  /** Aborted when the caller gives the call up. */
  readonly signal: AbortSignal | undefined;
  readonly onFinish: (exchange: Exchange) => void;
}

const answerTimeoutMsDefault = 35_000;
/** TCP keep-alive: how long a server takes to see that a client vanished. */
const keepAliveMs = 45_000;

export class Exchange {
  readonly #options: ExchangeOptions;
  readonly #gone = new AbortController();
  readonly #response = Promise.withResolvers<FetchResponse>();
  readonly #timer: Timer;
  /** Nothing arrives any more, and neither side notices. */
  #stalled = false;
  #inbox: Inbox | undefined;
  #lastArrivalMs = 0;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    const { answerTimeoutMs = answerTimeoutMsDefault, clock } = options.peer;
    this.#timer = clock.setTimer(answerTimeoutMs, () => {
      this.fail(new Error(`no answer within ${answerTimeoutMs} ms`));
      this.tellServer();
    });
    options.signal?.addEventListener('abort', this.#giveUp);
    options.listener.exchanges.add(this);
  }

  get response(): Promise<FetchResponse> {
    return this.#response.promise;
  }

  /** Aborted when the control plane hears that the client is gone. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  stall(): void {
    this.#stalled = true;
  }

  /** Ends it at the client, if it has not ended. */
  fail(error: Error): void {
    this.#finish();
    this.#response.reject(error);
    this.#inbox?.fail(error);
  }

  /** Tells the control plane that the client is gone. */
  tellServer(): void {
    const { listener, peer, transit } = this.#options;
    const silent = this.#stalled || transit.parted(peer, 'to-server');
    listener.clock.deliver(silent ? keepAliveMs : transit.delayMs(), () => this.#gone.abort());
  }

  /** Tells the client that the control plane is gone. */
  tellClient(error: Error): void {
    const { peer, transit } = this.#options;
    if (this.#stalled || transit.parted(peer, 'from-server')) return;
    peer.clock.deliver(transit.delayMs(), () => this.fail(error));
  }

  /** Carries the answer back over the network: all of it, or the first piece and then each as it comes. */
  answer(arrival: Arrival): void {
    const { peer, transit } = this.#options;
    if (transit.parted(peer, 'from-server') || transit.hit('answerLost')) {
      this.#stalled = true;
      arrival.pieces?.return?.().catch(() => {}); // the stream's own errors have no reader any more
      return;
    }
    if (arrival.pieces === undefined) {
      const { status, text } = arrival;
      peer.clock.deliver(transit.delayMs(), () => {
        this.#finish();
        this.#response.resolve(responseOf(status, text, null));
      });
      return;
    }
    const { status, first, pieces } = arrival;
    const inbox = createInbox(() => {
      this.fail(new Error('the stream was left'));
      this.tellServer();
    });
    this.#inbox = inbox;
    this.#inOrder(() => {
      this.#timer.cancel();
      this.#response.resolve(responseOf(status, '', inbox.body));
    });
    this.#disturbStream();
    void this.#pump(first, pieces, inbox);
  }

  readonly #giveUp = (): void => {
    this.fail(new Error('the call was given up'));
    this.tellServer();
  };

  #finish(): void {
    const { signal, listener, onFinish } = this.#options;
    this.#timer.cancel();
    signal?.removeEventListener('abort', this.#giveUp);
    listener.exchanges.delete(this);
    onFinish(this);
  }

  #disturbStream(): void {
    const { timeline, prng } = this.#options.transit;
    if (this.#options.transit.hit('streamCut')) {
      timeline.schedule(prng.below(30_000), () => {
        this.tellClient(new Error('the stream was cut'));
        this.tellServer();
      });
    } else if (this.#options.transit.hit('streamStalled')) {
      timeline.schedule(prng.below(30_000), () => this.stall());
    }
  }

  async #pump(first: IteratorResult<Uint8Array>, pieces: AsyncIterator<Uint8Array>, inbox: Inbox): Promise<void> {
    try {
      for (let piece = first; piece.done !== true; piece = await pieces.next()) {
        if (this.gone.aborted) return;
        const { value } = piece;
        this.#inOrder(() => inbox.push(value));
      }
    } catch (error) {
      const body = pieceOfError(error);
      this.#inOrder(() => inbox.push(body));
    } finally {
      this.#inOrder(() => {
        inbox.end();
        this.fail(new Error('the stream has ended')); // forgets the exchange; the inbox has ended already
      });
      await pieces.return?.();
    }
  }

  /** Delivers at the client after everything that was sent before on this stream. */
  #inOrder(deliver: () => void): void {
    const { peer, transit } = this.#options;
    if (transit.parted(peer, 'from-server')) this.#stalled = true;
    if (this.#stalled) return;
    const { nowMs } = transit.timeline;
    const arrivalMs = Math.max(this.#lastArrivalMs + 0.001, nowMs + transit.delayMs());
    this.#lastArrivalMs = arrivalMs;
    peer.clock.deliver(arrivalMs - nowMs, () => {
      if (!this.#stalled) deliver();
    });
  }
}

function responseOf(status: number, text: string, body: AsyncIterable<Uint8Array> | null): FetchResponse {
  return { status, headers: { get: () => null }, body, text: () => Promise.resolve(text) };
}
