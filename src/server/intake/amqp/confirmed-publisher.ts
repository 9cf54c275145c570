// Publishes with confirms and `mandatory`: a message that the broker has stored, or one that no queue wants. Everything
// else is an error, and whether the message arrived is then unknown.

import { type Clock, sleep } from '../../../base/clock.ts';
import type { BrokerChannel, BrokerLink, Envelope } from './broker.ts';

export interface Outgoing extends Envelope {
  readonly messageId: string;
}

/** Long enough for a broker under load; messages that wait for it are held unacknowledged. */
const confirmWithinMs = 30_000;

export class ConfirmedPublisher {
  readonly #connection: BrokerLink;
  readonly #clock: Clock;
  /** Called on each new channel, before anything is published. */
  readonly #prepare: () => Promise<void>;
  #channel: Promise<BrokerChannel> | undefined;
  /** By message name: number of returned copies that `publish` has not reported yet. */
  readonly #returned = new Map<string, number>();

  constructor(parts: {
    readonly connection: BrokerLink;
    readonly clock: Clock;
    readonly prepare: () => Promise<void>;
  }) {
    this.#connection = parts.connection;
    this.#clock = parts.clock;
    this.#prepare = parts.prepare;
  }

  get trouble(): string | undefined {
    return this.#connection.trouble;
  }

  /**
   * Waits until the broker takes messages, at most this long: what is written to a blocked connection stays in the
   * memory of this process.
   */
  async publish(
    envelope: Outgoing,
    body: Buffer,
    { readyWithinMs = confirmWithinMs } = {},
  ): Promise<'confirmed' | 'unrouted'> {
    if (!(await this.#connection.fine(readyWithinMs))) throw new Error(this.trouble);
    const channel = await this.#open();
    const stop = new AbortController();
    try {
      const late = sleep(this.#clock, confirmWithinMs, stop.signal).then(() => {
        if (!stop.signal.aborted) throw new Error('the broker did not confirm the message in time');
      });
      await Promise.race([channel.basicPublish({ ...envelope, mandatory: true, durable: true }, body), late]);
    } finally {
      stop.abort();
    }
    // The library tells of returned messages a turn later than of the confirm that follows them.
    await new Promise<void>((resolve) => this.#connection.afterTurn(resolve));
    return this.#takeReturned(nameOf(envelope)) ? 'unrouted' : 'confirmed';
  }

  async close(): Promise<void> {
    // Not waited for: a blocked connection takes no farewell either.
    void this.#channel?.then((channel) => channel.close()).catch(() => undefined);
    await this.#connection.close();
  }

  #takeReturned(name: string): boolean {
    const count = this.#returned.get(name) ?? 0;
    if (count > 1) this.#returned.set(name, count - 1);
    else this.#returned.delete(name);
    return count > 0;
  }

  #open(): Promise<BrokerChannel> {
    this.#channel ??= this.#prepared().catch((error: unknown) => {
      this.#channel = undefined;
      throw error;
    });
    return this.#channel;
  }

  async #prepared(): Promise<BrokerChannel> {
    await this.#prepare();
    const channel = await this.#connection.acquire();
    channel.on('basic.return', (message) => {
      const name = nameOf(message);
      this.#returned.set(name, (this.#returned.get(name) ?? 0) + 1);
    });
    channel.on('close', () => {
      this.#channel = undefined;
      this.#returned.clear();
    });
    await channel.confirmSelect();
    return channel;
  }
}

function nameOf({ exchange, routingKey, messageId }: Pick<Envelope, 'exchange' | 'routingKey' | 'messageId'>): string {
  return `${exchange}\n${routingKey}\n${messageId ?? ''}`;
}
