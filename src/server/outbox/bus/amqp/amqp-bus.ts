// A topic exchange of AMQP 0-9-1. Persistent messages with confirms; of each subject one is in flight, so that a message that is sent again
// does not come after a later one. What no queue wants comes back: the exchange took it, and the log says so.

import type { Clock } from '../../../../base/clock.ts';
import type { Logger } from '../../../../base/log.ts';
import type { CloudEvent } from '../../../../api/news/cloud-event.ts';
import type { BrokerLink } from '../../../intake/amqp/broker.ts';
import { brokerAt } from '../../../intake/amqp/broker-connection.ts';
import { ConfirmedPublisher } from '../../../intake/amqp/confirmed-publisher.ts';
import { type Bus, mediaType, routeOf } from '../bus.ts';
import type { BusSettings } from '../bus-settings.ts';

const connectWithinMs = 10_000;
/** A broker that is away or blocked for longer is one that takes nothing: the sender says so and tries again. */
const readyWithinMs = 2_000;

export async function openAmqp(
  { url, place: exchange, login, tls }: BusSettings,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<Bus> {
  const full = new URL(url);
  if (login !== undefined) {
    full.username = encodeURIComponent(login.user);
    full.password = encodeURIComponent(login.password);
  }
  const link = brokerAt(full.href, { clock, log, tls })('event bus');
  try {
    const failed = await link.first;
    if (failed !== undefined) throw failed;
    if (!(await link.fine(connectWithinMs))) throw new Error(link.trouble);
    await declare(link, exchange);
  } catch (error) {
    await link.close();
    throw error;
  }
  return new AmqpBus(link, { exchange, clock, log });
}

/** Fails when there is one of another type. */
async function declare(link: BrokerLink, exchange: string): Promise<void> {
  const channel = await link.acquire();
  await channel.exchangeDeclare({ exchange, type: 'topic', durable: true });
  await channel.close();
}

class AmqpBus implements Bus {
  readonly #publisher: ConfirmedPublisher;
  readonly #exchange: string;
  readonly #log: Logger;
  #hasWarned = false;

  constructor(
    connection: BrokerLink,
    { exchange, clock, log }: { readonly exchange: string; readonly clock: Clock; readonly log: Logger },
  ) {
    this.#publisher = new ConfirmedPublisher({ connection, clock, prepare: () => Promise.resolve() });
    this.#exchange = exchange;
    this.#log = log;
  }

  last(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async send(events: readonly CloudEvent[]): Promise<void> {
    for (const round of roundsOf(events)) await Promise.all(round.map((event) => this.#publish(event)));
  }

  close(): Promise<void> {
    return this.#publisher.close();
  }

  async #publish(event: CloudEvent): Promise<void> {
    const routingKey = routeOf(event);
    const { id: messageId, traceparent } = event;
    const headers = traceparent === undefined ? {} : { headers: { traceparent } };
    const envelope = { exchange: this.#exchange, routingKey, messageId, contentType: mediaType, ...headers };
    const outcome = await this.#publisher.publish(envelope, Buffer.from(JSON.stringify(event)), { readyWithinMs });
    if (outcome === 'confirmed' || this.#hasWarned) return;
    this.#hasWarned = true; // once for each connection
    this.#log.warn('no queue takes some events of the event bus: bind one to its exchange', {
      exchange: this.#exchange,
      routingKey,
    });
  }
}

/** In each round no two events of one subject; those of one subject are in order. */
export function roundsOf(events: readonly CloudEvent[]): readonly (readonly CloudEvent[])[] {
  const rounds: CloudEvent[][] = [];
  const counts = new Map<string, number>();
  for (const event of events) {
    const count = counts.get(event.partitionkey) ?? 0;
    counts.set(event.partitionkey, count + 1);
    (rounds[count] ??= []).push(event);
  }
  return rounds;
}
