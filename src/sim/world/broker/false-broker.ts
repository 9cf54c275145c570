// A false message broker: exchanges, queues and channels as RabbitMQ has them, as far as the product uses them. It keeps
// everything until it is acknowledged, and knows nothing of time: false-link.ts brings the words, late or never.

import type { Envelope } from '../../../server/intake/amqp/broker.ts';
import { brokerError, type Queue, type StoredMessage } from './broker-parts.ts';

interface Exchange {
  readonly type: 'direct' | 'fanout' | 'topic'; // nothing binds a topic with a pattern
  readonly bindings: { readonly queue: string; readonly routingKey: string }[];
}

export interface BrokerEvents {
  /** A message was stored in these queues; none: no queue wanted it. */
  readonly onPublished?: (message: StoredMessage, queues: readonly string[]) => void;
  /** The broker forgets a message. */
  readonly onAcknowledged?: (message: StoredMessage, queue: string) => void;
}

export class FalseBroker {
  readonly events: BrokerEvents;
  readonly #exchanges = new Map<string, Exchange>();
  readonly #queues = new Map<string, Queue>();
  #consumers = 0;

  constructor(events: BrokerEvents = {}) {
    this.events = events;
  }

  /** Messages of a queue that wait for a consumer; none when there is no such queue. */
  ready(queue: string): readonly StoredMessage[] {
    return this.#queues.get(queue)?.ready ?? [];
  }

  newConsumerTag(): string {
    this.#consumers += 1;
    return `consumer-${this.#consumers}`;
  }

  /** Throws what the broker says to one that it does not have. */
  queueOf(name: string): Queue {
    const queue = this.#queues.get(name);
    if (queue === undefined) throw brokerError('NOT_FOUND', `no queue '${name}'`);
    return queue;
  }

  declareQueue(name: string, argumentsText: string): Queue {
    const known = this.#queues.get(name);
    if (known && known.argumentsText !== argumentsText)
      throw brokerError('PRECONDITION_FAILED', `inequivalent arguments for queue '${name}'`);
    const queue = known ?? { name, ready: [], consumers: [], argumentsText };
    this.#queues.set(name, queue);
    return queue;
  }

  /** Its messages are gone. */
  deleteQueue(name: string): void {
    const queue = this.#queues.get(name);
    this.#queues.delete(name);
    for (const { bindings } of this.#exchanges.values())
      bindings.splice(0, bindings.length, ...bindings.filter((binding) => binding.queue !== name));
    for (const { channel, tag } of queue?.consumers ?? []) channel.cancelledByBroker(tag);
  }

  exchangeOf(name: string): Exchange {
    const exchange = this.#exchanges.get(name);
    if (exchange === undefined) throw brokerError('NOT_FOUND', `no exchange '${name}'`);
    return exchange;
  }

  declareExchange(name: string, type: Exchange['type']): void {
    const known = this.#exchanges.get(name);
    if (known && known.type !== type)
      throw brokerError('PRECONDITION_FAILED', `inequivalent arg 'type' for exchange '${name}'`);
    if (!known) this.#exchanges.set(name, { type, bindings: [] });
  }

  bind({ queue, exchange, routingKey }: { queue: string; exchange: string; routingKey: string }): void {
    this.queueOf(queue);
    const { bindings } = this.exchangeOf(exchange);
    if (!bindings.some((each) => each.queue === queue && each.routingKey === routingKey))
      bindings.push({ queue, routingKey });
  }

  /** Whether a queue has taken it. */
  publish(envelope: Envelope, body: Buffer): boolean {
    const names = this.#route(envelope);
    const copies = names.map((name) => ({ name, message: { envelope, body, deliveries: 0 } }));
    this.events.onPublished?.(copies[0]?.message ?? { envelope, body, deliveries: 0 }, names);
    for (const { name, message } of copies) {
      const queue = this.queueOf(name);
      queue.ready.push(message);
      this.dispatch(queue);
    }
    return names.length > 0;
  }

  /** The time of a message in this queue is over: it goes where the dead letters of the queue go. */
  expire(queueName: string, message: StoredMessage): void {
    const queue = this.#queues.get(queueName);
    const at = queue?.ready.indexOf(message) ?? -1;
    if (queue === undefined || at < 0) return;
    queue.ready.splice(at, 1);
    const to: { readonly [name: string]: unknown } = JSON.parse(queue.argumentsText);
    const exchange = String(to['x-dead-letter-exchange']);
    const routingKey = String(to['x-dead-letter-routing-key']);
    const { mandatory: _, ...envelope } = message.envelope;
    this.publish({ ...envelope, exchange, routingKey }, message.body);
  }

  /** In the order in which they were. */
  requeue(queueName: string, messages: readonly StoredMessage[]): void {
    const queue = this.#queues.get(queueName);
    if (queue === undefined) return;
    queue.ready.unshift(...messages);
    this.dispatch(queue);
  }

  /** To consumers that may have more, in turn. */
  dispatch(queue: Queue): void {
    while (queue.ready.length > 0) {
      const free = queue.consumers.findIndex(({ prefetch, held }) => prefetch === 0 || held < prefetch);
      const [consumer] = free < 0 ? [] : queue.consumers.splice(free, 1);
      const message = consumer && queue.ready.shift();
      if (!consumer || !message) return;
      queue.consumers.push(consumer);
      consumer.channel.deliver(queue.name, consumer, message);
    }
  }

  #route({ exchange, routingKey }: Envelope): readonly string[] {
    if (exchange === '') return this.#queues.has(routingKey) ? [routingKey] : [];
    const { type, bindings } = this.exchangeOf(exchange);
    const wanted = bindings.filter((binding) => type === 'fanout' || binding.routingKey === routingKey);
    return [...new Set(wanted.map(({ queue }) => queue))];
  }
}
