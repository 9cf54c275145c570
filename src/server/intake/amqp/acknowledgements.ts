// Acknowledgements of one channel, a turn's worth at a time: those without a gap before them go as one, which spares
// the broker and the socket most of the work.

import type { BrokerChannel } from './broker.ts';

export class Acknowledgements {
  readonly #channel: Pick<BrokerChannel, 'active' | 'basicAck'>;
  readonly #afterTurn: (run: () => void) => void;
  /** Finished, and not told to the broker yet. */
  readonly #finished = new Set<number>();
  /** All tags below it are acknowledged. */
  #next = 1;
  readonly #alone = new Set<number>();
  #planned = false;

  constructor(channel: Pick<BrokerChannel, 'active' | 'basicAck'>, afterTurn: (run: () => void) => void) {
    this.#channel = channel;
    this.#afterTurn = afterTurn;
  }

  /** On a closed channel it does nothing: the message comes again, and is known. */
  add(deliveryTag: number): void {
    this.#finished.add(deliveryTag);
    if (this.#planned) return;
    this.#planned = true;
    this.#afterTurn(() => {
      this.#planned = false;
      this.flush();
    });
  }

  flush(): void {
    if (!this.#channel.active) return;
    const upTo = this.#takeWithoutGap();
    if (upTo !== undefined) this.#channel.basicAck({ deliveryTag: upTo, multiple: true });
    for (const deliveryTag of this.#finished) {
      this.#channel.basicAck({ deliveryTag });
      this.#alone.add(deliveryTag);
    }
    this.#finished.clear();
  }

  /** The last finished one before the first gap. The broker closes the channel for a tag that it was told already. */
  #takeWithoutGap(): number | undefined {
    let last: number | undefined;
    for (; ; this.#next += 1) {
      if (this.#finished.delete(this.#next)) last = this.#next;
      else if (!this.#alone.delete(this.#next)) return last;
    }
  }
}
