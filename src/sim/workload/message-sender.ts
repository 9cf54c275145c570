// Sends messages to the false broker until it has confirmed them, as publishers do, so that messages come twice.

import { sleep } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import type { BrokerChannel, BrokerLink } from '../../server/intake/amqp/broker.ts';
import type { SimBroker } from '../world/broker/sim-broker.ts';
import { createProcessClock, type ProcessClock } from '../world/process-clock.ts';
import type { WorkloadParts } from './parts.ts';

export interface MessageSenderOptions {
  readonly parts: WorkloadParts;
  readonly prng: Prng;
  readonly broker: SimBroker;
}

const patienceMsMax = 10_000;

export class MessageSender {
  readonly clock: ProcessClock;
  readonly #options: MessageSenderOptions;
  readonly #link: BrokerLink;
  #channel: BrokerChannel | undefined;

  constructor(options: MessageSenderOptions) {
    this.#options = options;
    this.clock = createProcessClock(options.parts.timeline);
    this.#link = options.broker.link(this.clock);
  }

  async send(envelope: Parameters<BrokerChannel['basicPublish']>[0], text: string): Promise<void> {
    while (!(await this.#publish(envelope, text))) await sleep(this.clock, 100 + this.#options.prng.below(2_000));
  }

  /** False: it may have arrived, and may not. */
  async #publish(envelope: Parameters<BrokerChannel['basicPublish']>[0], text: string): Promise<boolean> {
    const { parts, prng } = this.#options;
    const stop = new AbortController();
    try {
      const channel = await this.#open();
      let returned = false;
      channel.on('basic.return', () => {
        returned = true;
      });
      const patience = sleep(this.clock, 1_000 + prng.below(patienceMsMax), stop.signal).then(() => 'late');
      const outcome = await Promise.race([channel.basicPublish(envelope, Buffer.from(text)), patience]);
      await new Promise<void>((resolve) => this.#link.afterTurn(resolve));
      return outcome !== 'late' && !returned;
    } catch (error) {
      parts.trace(() => `publisher: ${describeError(error)}`);
      return false;
    } finally {
      stop.abort();
    }
  }

  async #open(): Promise<BrokerChannel> {
    if (this.#channel?.active === true) return this.#channel;
    const channel = await this.#link.acquire();
    await channel.confirmSelect();
    this.#channel = channel;
    return channel;
  }
}
