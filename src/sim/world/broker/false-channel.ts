// A channel at the client's side of the false broker: what is called on it, and what comes of it.

import type { BrokerChannel, BrokerMessage, Envelope } from '../../../server/intake/amqp/broker.ts';
import { brokerError } from './broker-parts.ts';
import { ServerChannel } from './server-channel.ts';
import type { LinkOptions, Wire } from './wire.ts';

type Listener = (message: Pick<BrokerMessage, 'exchange' | 'routingKey' | 'messageId'>) => void;
type ChannelEvent = 'close' | 'basic.cancel' | 'basic.return';

export class FalseChannel implements BrokerChannel {
  readonly opened: Promise<void>;
  readonly #wire: Wire;
  readonly #options: LinkOptions;
  readonly #server: ServerChannel;
  readonly #listeners = new Map<ChannelEvent, Listener[]>();
  readonly #takers = new Map<string, (message: BrokerMessage) => void>();
  /** Calls that wait for the broker. */
  readonly #calls = new Set<(error: Error) => void>();
  #confirms = false;
  #active = true;

  constructor(wire: Wire, options: LinkOptions) {
    this.#wire = wire;
    this.#options = options;
    this.#server = new ServerChannel(options.broker, {
      delivered: (tag, message) => this.#delivered(tag, message),
      returned: (envelope) => wire.toClient(() => this.#emit('basic.return', envelope)),
      cancelled: (tag) =>
        wire.toClient(() => {
          this.#takers.delete(tag);
          this.#emit('basic.cancel');
        }),
    });
    wire.onBreak('atBroker', () => this.#server.close());
    wire.onBreak('atClient', () => this.#end(brokerError('CH_CLOSE', 'channel is closed')));
    this.opened = this.#call(() => {});
  }

  get active(): boolean {
    return this.#active;
  }

  on(event: ChannelEvent, listener: Listener | (() => void)): void {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
  }

  basicQos({ prefetchCount }: { readonly prefetchCount: number }): Promise<void> {
    return this.#call(() => this.#server.limit(prefetchCount));
  }

  async basicConsume(
    { queue }: { readonly queue: string },
    take: (message: BrokerMessage) => void,
  ): Promise<{ readonly consumerTag: string }> {
    const consumerTag = await this.#call(
      () => this.#server.consume(queue),
      (tag) => {
        this.#takers.set(tag, take);
      },
      () => this.#server.dispatch(queue),
    );
    return { consumerTag };
  }

  async basicCancel({ consumerTag }: { readonly consumerTag: string }): Promise<void> {
    await this.#call(() => this.#server.cancel(consumerTag));
    this.#takers.delete(consumerTag);
  }

  basicAck({ deliveryTag, multiple = false }: { readonly deliveryTag: number; readonly multiple?: boolean }): void {
    if (!this.#active) throw brokerError('CH_CLOSE', 'channel is closed');
    this.#wire.toBroker(() => {
      if (this.#options.weather.breaks('acknowledgement')) return this.#wire.break();
      this.#attempt(() => this.#server.acknowledge(deliveryTag, multiple));
    });
  }

  basicGet({ queue, noAck = false }: { readonly queue: string; readonly noAck?: boolean }) {
    return this.#call(() => this.#server.get(queue, noAck));
  }

  async confirmSelect(): Promise<void> {
    await this.#call(() => {});
    this.#confirms = true;
  }

  basicPublish(envelope: Envelope, body: Buffer): Promise<void> {
    if (this.#confirms) return this.#call(() => this.#publish(envelope, body), undefined, undefined, 'confirm');
    if (!this.#active) return Promise.reject(brokerError('CH_CLOSE', 'channel is closed'));
    this.#wire.toBroker(() => this.#attempt(() => this.#publish(envelope, body)));
    return Promise.resolve();
  }

  exchangeDeclare({ exchange, type = 'direct', passive = false }: Parameters<BrokerChannel['exchangeDeclare']>[0]) {
    const { broker } = this.#options;
    return this.#call(() => void (passive ? broker.exchangeOf(exchange) : broker.declareExchange(exchange, type)));
  }

  queueDeclare({ queue, passive = false, arguments: given = {} }: Parameters<BrokerChannel['queueDeclare']>[0]) {
    const { broker } = this.#options;
    return this.#call(() => {
      const { ready, consumers } = passive ? broker.queueOf(queue) : broker.declareQueue(queue, JSON.stringify(given));
      return { messageCount: ready.length, consumerCount: consumers.length };
    });
  }

  queueDelete({ queue }: { readonly queue: string }): Promise<void> {
    return this.#call(() => this.#options.broker.deleteQueue(queue));
  }

  queueBind(what: Parameters<BrokerChannel['queueBind']>[0]): Promise<void> {
    return this.#call(() => this.#options.broker.bind(what));
  }

  async close(): Promise<void> {
    if (!this.#active) return;
    const closed = this.#call(() => this.#server.close()).catch(() => undefined); // without a connection it is closed, too
    this.#active = false;
    await closed;
    this.#end(brokerError('CH_CLOSE', 'channel is closed'));
  }

  #publish(envelope: Envelope, body: Buffer): void {
    this.#server.publish(envelope, body);
    if (this.#options.weather.breaks('confirm')) this.#wire.break();
  }

  /** Resolves when the answer has come. `heard`: in the same event; `after`: at the broker, once the answer is on its way. */
  #call<Result>(
    run: () => Result,
    heard?: (result: Result) => void,
    after?: () => void,
    kind: 'call' | 'confirm' = 'call',
  ): Promise<Result> {
    if (!this.#active || !this.#wire.usable) return Promise.reject(brokerError('CH_CLOSE', 'channel is closed'));
    return new Promise((resolve, reject) => {
      this.#calls.add(reject);
      const answer = (result: Result): void =>
        this.#wire.toClient(() => {
          this.#calls.delete(reject);
          heard?.(result);
          resolve(result);
        });
      this.#wire.toBroker(() => {
        const lateMs = kind === 'confirm' ? this.#options.weather.confirmLateMs() : 0;
        this.#attempt(() => {
          const result = run();
          if (lateMs > 0) this.#options.timeline.schedule(lateMs, () => answer(result));
          else answer(result);
          after?.();
        }, reject);
      });
    });
  }

  /** At the broker. What it refuses ends the channel. */
  #attempt(run: () => void, reject?: (error: Error) => void): void {
    if (!this.#server.open) return;
    try {
      run();
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      this.#server.close();
      this.#wire.toClient(() => {
        if (reject) this.#calls.delete(reject);
        reject?.(error);
        this.#end(brokerError('CH_CLOSE', 'channel is closed'));
      });
    }
  }

  #delivered(tag: string, message: BrokerMessage): void {
    if (this.#options.weather.breaks('delivery')) this.#options.timeline.schedule(0.001, this.#wire.break);
    this.#wire.toClient(() => this.#takers.get(tag)?.(message));
  }

  #end(error: Error): void {
    const wasOpen = this.#listeners.size > 0 || this.#active;
    this.#active = false;
    for (const reject of this.#calls) reject(error);
    this.#calls.clear();
    this.#takers.clear();
    if (wasOpen) this.#emit('close');
    this.#listeners.clear();
  }

  #emit(event: ChannelEvent, message: Pick<Envelope, 'exchange' | 'routingKey' | 'messageId'> = nothing): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(message);
  }
}

const nothing = { exchange: '', routingKey: '' };
