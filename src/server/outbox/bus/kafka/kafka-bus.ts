// A topic of Kafka. One batch is in flight, acknowledged by all replicas that are in sync, and the key is the subject: one partition keeps
// its order. A batch that fails is sent again as a whole by the sender.

import { Producer, stringSerializers } from '@platformatic/kafka';
import type { CloudEvent } from '../../../../api/news/cloud-event.ts';
import { type Bus, mediaType } from '../bus.ts';
import type { BusSettings } from '../bus-settings.ts';

const timeoutMs = 5_000;
const allInSync = -1;

export async function openKafka({ url, place: topic, login, tls }: BusSettings): Promise<Bus> {
  const producer = new Producer({
    clientId: 'berth',
    bootstrapBrokers: url.slice(url.indexOf('//') + 2).split(','),
    serializers: stringSerializers,
    connectTimeout: timeoutMs,
    requestTimeout: timeoutMs,
    retries: 0, // the sender tries again, and knows what is in flight
    ...(tls === undefined ? {} : { tls: { ...tls } }),
    ...(login === undefined ? {} : { sasl: { mechanism: 'PLAIN', username: login.user, password: login.password } }),
  });
  const bus = new KafkaBus(producer, topic);
  try {
    await producer.metadata({ topics: [topic] });
    return bus;
  } catch (error) {
    await bus.close();
    throw error;
  }
}

class KafkaBus implements Bus {
  readonly #producer: Producer<string, string, string, string>;
  readonly #topic: string;

  constructor(producer: Producer<string, string, string, string>, topic: string) {
    this.#producer = producer;
    this.#topic = topic;
  }

  last(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async send(events: readonly CloudEvent[]): Promise<void> {
    const messages = events.map((event) => ({
      topic: this.#topic,
      key: event.partitionkey,
      value: JSON.stringify(event),
      headers: {
        'content-type': mediaType,
        ce_id: event.id,
        ...(event.traceparent === undefined ? {} : { traceparent: event.traceparent }),
      },
    }));
    await this.#producer.send({ acks: allInSync, messages });
  }

  async close(): Promise<void> {
    await this.#producer.close(true);
  }
}
