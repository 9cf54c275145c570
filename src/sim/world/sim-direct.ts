// Direct connections between false hosts, for moves. One breaks when the agent at either end dies, and carries nothing but calls.

import { ApiError } from '../../api/errors.ts';
import type { MoveAddress } from '../../api/resources/migration.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { firstOf } from '../../base/concurrency/first-of.ts';
import { sha256 } from '../../base/sha256.ts';
import type { DirectMoves, Offer } from '../../agent/migration/direct/contract.ts';
import type { LiveSource, Move } from '../../agent/migration/move.ts';

interface Offered {
  readonly offer: Offer;
  readonly clock: Clock;
  /** Aborts with the agent that offers. */
  readonly gone: AbortSignal;
}

/** What the hosts of one world offer to each other, by the id of the move. */
export type SimOffers = Map<string, Offered>;

const latencyMs = 1;
const patienceMs = 5_000;
const at: MoveAddress = { address: '10.0.0.1', port: 49_152 };

/** Of one life of an agent; `gone` aborts with it. */
export class SimDirect implements DirectMoves {
  readonly fingerprint: string;
  readonly listens = true;
  readonly #offers: SimOffers;
  readonly #clock: Clock;
  readonly #gone: AbortSignal;
  readonly #own = new Map<string, string>();

  constructor(parts: {
    readonly name: string;
    readonly offers: SimOffers;
    readonly clock: Clock;
    readonly gone: AbortSignal;
  }) {
    this.fingerprint = (sha256(parts.name).toUpperCase().match(/../g) ?? []).join(':');
    this.#offers = parts.offers;
    this.#clock = parts.clock;
    this.#gone = parts.gone;
  }

  async listen(): Promise<MoveAddress> {
    return at;
  }

  accept(): void {
    // Fake guests arrive through their world.
  }

  offer(offer: Offer): void {
    const { instanceId, id } = offer.move;
    this.end(instanceId, id);
    this.#own.set(instanceId, id);
    this.#offers.set(id, { offer, clock: this.#clock, gone: this.#gone });
  }

  end(instanceId: string, except?: string): void {
    const id = this.#own.get(instanceId);
    if (id === undefined || id === except) return;
    this.#own.delete(instanceId);
    this.#offers.delete(id);
  }

  async close(): Promise<void> {
    for (const instanceId of [...this.#own.keys()]) this.end(instanceId);
  }

  async source(move: Move, signal: AbortSignal): Promise<LiveSource | undefined> {
    if (this.#find(move) === undefined) await sleep(this.#clock, patienceMs, signal);
    if (this.#find(move) === undefined) return undefined;
    return {
      manifest: (asked, cut) => this.#ask(asked, cut, ({ outgoing }) => outgoing.manifest(asked)),
      read: (asked, piece, cut) => this.#ask(asked, cut, ({ outgoing }) => outgoing.read(asked, piece)),
      machine: (asked, cut) => this.#ask(asked, cut, ({ outgoing }) => outgoing.machine(asked)),
      sent: (asked, cut) => this.#ask(asked, cut, ({ outgoing }) => outgoing.sent(asked)),
      send: (asked, onProgress, cut) =>
        this.#ask(asked, cut, ({ outgoing }, over) =>
          outgoing.send(asked, { onProgress, dial: () => Promise.reject(broken()) }, over),
        ),
    };
  }

  #find({ id }: Move): Offered | undefined {
    const found = this.#offers.get(id);
    return found?.gone.aborted === true ? undefined : found;
  }

  /** A paused agent answers later, and a dead one never. */
  async #ask<Answer>(
    move: Move,
    signal: AbortSignal,
    act: (offer: Offer, over: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    const found = this.#find(move);
    if (found === undefined) throw broken();
    const { offer, clock, gone } = found;
    // Either end, or who asks, may go: the other end sees that the connection is closed.
    const over = firstOf(signal, gone, this.#gone);
    const closed = new Promise<never>((_resolve, reject) =>
      over.signal.addEventListener('abort', () => reject(broken()), { once: true }),
    );
    closed.catch(() => {}); // it may close later
    try {
      await sleep(clock, latencyMs, over.signal);
      const answer = await Promise.race([act(offer, over.signal), closed]);
      await sleep(this.#clock, latencyMs, over.signal);
      if (over.signal.aborted) throw broken();
      return answer;
    } finally {
      over.forget();
    }
  }
}

const broken = (): ApiError => new ApiError('HostUnreachable', 'the connection to the other host of the move broke');
