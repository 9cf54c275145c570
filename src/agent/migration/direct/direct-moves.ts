// Direct connections over TLS between the two hosts of a move: the target listens only for this move, and the source connects. With TLS each
// proves that it has the key whose fingerprint the other got from the control plane.

import type { Duplex } from 'node:stream';
import type { MoveAddress } from '../../../api/resources/migration.ts';
import type { LiveSource, Move } from '../move.ts';
import type { DirectMoves, DirectOptions, Offer } from './contract.ts';
import { MoveListener } from './move-listener.ts';
import { holdOffer } from './offer.ts';

export class TlsMoves implements DirectMoves {
  readonly fingerprint: string;
  readonly listens: boolean;
  readonly #options: DirectOptions;
  readonly #listeners = new Map<string, { readonly id: string; readonly opening: Promise<MoveListener> }>();
  readonly #offers = new Map<string, { readonly key: string; readonly id: string; readonly over: AbortController }>();
  readonly #background = new Set<Promise<void>>();

  constructor(options: DirectOptions) {
    this.#options = options;
    this.fingerprint = options.identity.fingerprint;
    this.listens = options.address !== undefined;
  }

  async listen(move: Move, peer: string): Promise<MoveAddress> {
    const { instanceId, id } = move;
    let known = this.#listeners.get(instanceId);
    if (known?.id !== id) {
      this.end(instanceId);
      known = { id, opening: MoveListener.open(this.#options, { id, peer }) };
      this.#listeners.set(instanceId, known);
    }
    try {
      return (await known.opening).at;
    } catch (error) {
      if (this.#listeners.get(instanceId) === known) this.#listeners.delete(instanceId);
      throw error;
    }
  }

  async source({ instanceId, id }: Move, signal: AbortSignal): Promise<LiveSource | undefined> {
    const known = this.#listeners.get(instanceId);
    return known?.id === id ? (await known.opening).source(signal) : undefined;
  }

  accept({ instanceId, id }: Move, connect: ((name: string) => Promise<Duplex>) | undefined): void {
    const known = this.#listeners.get(instanceId);
    if (known?.id !== id) return;
    void known.opening.then(
      (listener) => listener.accept(connect),
      () => {}, // it was never open: `listen` has said why
    );
  }

  offer(offer: Offer): void {
    const { move, peer, at } = offer;
    const key = JSON.stringify([move.id, peer, at]);
    const { instanceId, id } = move;
    if (this.#offers.get(instanceId)?.key === key) return;
    this.end(instanceId);
    const over = new AbortController();
    this.#offers.set(instanceId, { key, id, over });
    this.#inBackground(holdOffer(this.#options, offer, over.signal));
  }

  end(instanceId: string, except?: string): void {
    const offer = this.#offers.get(instanceId);
    if (offer !== undefined && offer.id !== except) {
      this.#offers.delete(instanceId);
      offer.over.abort();
    }
    const listener = this.#listeners.get(instanceId);
    if (listener === undefined || listener.id === except) return;
    this.#listeners.delete(instanceId);
    this.#inBackground(
      listener.opening.then(
        (opened) => opened.close(),
        () => {}, // it was never open: `listen` has said why
      ),
    );
  }

  async close(): Promise<void> {
    for (const instanceId of [...this.#offers.keys(), ...this.#listeners.keys()]) this.end(instanceId);
    await Promise.all(this.#background);
  }

  #inBackground(run: Promise<void>): void {
    this.#background.add(run);
    void run.finally(() => this.#background.delete(run));
  }
}
