// What the parts of the false broker pass to one another.

import type { BrokerMessage, Envelope } from '../../../server/intake/amqp/broker.ts';

export interface StoredMessage {
  readonly envelope: Envelope;
  readonly body: Buffer;
  deliveries: number;
}

/** What a client's channel hears. */
export interface ChannelEar {
  delivered(consumerTag: string, message: BrokerMessage): void;
  returned(envelope: Envelope): void;
  cancelled(consumerTag: string): void;
}

export interface Consumer {
  readonly tag: string;
  readonly channel: {
    deliver(queue: string, consumer: Consumer, message: StoredMessage): void;
    cancelledByBroker(tag: string): void;
  };
  /** 0: no limit. */
  readonly prefetch: number;
  held: number;
}

export interface Queue {
  readonly name: string;
  readonly ready: StoredMessage[];
  readonly consumers: Consumer[];
  readonly argumentsText: string;
}

/** What has just happened at the broker. */
export interface MessageEvent {
  readonly kind: 'published' | 'acknowledged';
  readonly envelope: Envelope;
  readonly body: Buffer;
  /** That have it now, or had it; none: no queue wanted it. */
  readonly queues: readonly string[];
}

/** As the client's library throws it. */
export function brokerError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
