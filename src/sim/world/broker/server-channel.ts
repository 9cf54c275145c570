// A channel as the false broker has it: what it delivered and who consumes. It ends with its connection, and what was not
// acknowledged goes back then.

import type { BrokerMessage, Envelope } from '../../../server/intake/amqp/broker.ts';
import { brokerError, type ChannelEar, type Consumer, type StoredMessage } from './broker-parts.ts';
import type { FalseBroker } from './false-broker.ts';

interface Held {
  readonly queue: string;
  readonly message: StoredMessage;
  readonly consumer: Consumer | undefined;
}

export class ServerChannel {
  readonly #broker: FalseBroker;
  readonly #ear: ChannelEar;
  readonly #held = new Map<number, Held>();
  readonly #consumed = new Map<string, string>();
  #prefetch = 0;
  #tags = 0;
  #open = true;

  constructor(broker: FalseBroker, ear: ChannelEar) {
    this.#broker = broker;
    this.#ear = ear;
  }

  get open(): boolean {
    return this.#open;
  }

  /** Of consumers from now on. */
  limit(prefetch: number): void {
    this.#prefetch = prefetch;
  }

  consume(queueName: string): string {
    const queue = this.#broker.queueOf(queueName);
    const consumer = { tag: this.#broker.newConsumerTag(), channel: this, prefetch: this.#prefetch, held: 0 };
    this.#consumed.set(consumer.tag, queueName);
    queue.consumers.push(consumer);
    return consumer.tag;
  }

  /** After the client was told that it consumes. */
  dispatch(queueName: string): void {
    this.#broker.dispatch(this.#broker.queueOf(queueName));
  }

  /** Its messages stay with the channel. */
  cancel(tag: string): void {
    const queueName = this.#consumed.get(tag);
    this.#consumed.delete(tag);
    if (queueName === undefined) return;
    const { consumers } = this.#broker.queueOf(queueName);
    const at = consumers.findIndex((consumer) => consumer.tag === tag);
    if (at >= 0) consumers.splice(at, 1);
  }

  cancelledByBroker(tag: string): void {
    this.#consumed.delete(tag);
    this.#ear.cancelled(tag);
  }

  deliver(queue: string, consumer: Consumer, message: StoredMessage): void {
    consumer.held += 1;
    this.#ear.delivered(consumer.tag, this.#hand({ queue, message, consumer }));
  }

  get(queueName: string, noAck: boolean): BrokerMessage | undefined {
    const message = this.#broker.queueOf(queueName).ready.shift();
    if (message === undefined) return undefined;
    const handed = this.#hand({ queue: queueName, message, consumer: undefined });
    if (noAck) this.acknowledge(handed.deliveryTag, false);
    return handed;
  }

  acknowledge(tag: number, multiple: boolean): void {
    const tags = multiple ? [...this.#held.keys()].filter((each) => each <= tag) : [tag];
    if (!multiple && !this.#held.has(tag)) throw brokerError('PRECONDITION_FAILED', `unknown delivery tag ${tag}`);
    const queues = new Set<string>();
    for (const each of tags) {
      const held = this.#held.get(each);
      if (held === undefined) continue;
      this.#held.delete(each);
      queues.add(held.queue);
      if (held.consumer) held.consumer.held -= 1;
      this.#broker.events.onAcknowledged?.(held.message, held.queue);
    }
    for (const queue of queues) this.#broker.dispatch(this.#broker.queueOf(queue));
  }

  publish(envelope: Envelope, body: Buffer): void {
    const routed = this.#broker.publish(envelope, body);
    if (!routed && envelope.mandatory === true) this.#ear.returned(envelope);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    for (const tag of this.#consumed.keys()) this.cancel(tag);
    const byQueue = Map.groupBy(this.#held.values(), ({ queue }) => queue);
    this.#held.clear();
    for (const [queue, held] of byQueue)
      this.#broker.requeue(
        queue,
        held.map(({ message }) => message),
      );
  }

  #hand(held: Held): BrokerMessage {
    const { message } = held;
    const { mandatory: _, durable: __, ...properties } = message.envelope;
    this.#tags += 1;
    this.#held.set(this.#tags, held);
    message.deliveries += 1;
    return { ...properties, body: message.body, deliveryTag: this.#tags, redelivered: message.deliveries > 1 };
  }
}
