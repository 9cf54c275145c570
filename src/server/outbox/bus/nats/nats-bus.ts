// NATS JetStream. One event is in flight: the last message of the stream then says what the stream has, which ids do not after two
// minutes. A connection that breaks is not mended: the sender opens another.

import {
  DiscardPolicy,
  jetstream,
  JetStreamApiError,
  jetstreamManager,
  type JetStreamManager,
} from '@nats-io/jetstream';
import { connect, headers, type NatsConnection } from '@nats-io/transport-node';
import type { CloudEvent } from '../../../../api/news/cloud-event.ts';
import { type Bus, mediaType, routeOf } from '../bus.ts';
import type { BusSettings } from '../bus-settings.ts';

const timeoutMs = 5_000;
const subjects = 'berth.events.>';
/** Of a stream that is made here: a week. */
const keptMs = 7 * 86_400_000;

export async function openNats({ url, place: stream, login, token, tls }: BusSettings): Promise<Bus> {
  const connection = await connect({
    servers: url.slice(url.indexOf('//') + 2).split(','),
    name: 'berth',
    timeout: timeoutMs,
    reconnect: false,
    ...(login === undefined ? {} : { user: login.user, pass: login.password }),
    ...(token === undefined ? {} : { token }),
    ...(tls === undefined ? {} : { tls: { ...tls } }),
  });
  try {
    const manager = await jetstreamManager(connection, { timeout: timeoutMs });
    await ensureStream(manager, stream);
    return new NatsBus(connection, { manager, stream });
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** One that is there is never changed. */
async function ensureStream({ streams }: JetStreamManager, name: string): Promise<void> {
  try {
    await streams.info(name);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.status !== 404) throw error;
    await streams.add({ name, subjects: [subjects], discard: DiscardPolicy.Old, max_age: keptMs * 1_000_000 });
  }
}

class NatsBus implements Bus {
  readonly #connection: NatsConnection;
  readonly #manager: JetStreamManager;
  readonly #stream: string;

  constructor(
    connection: NatsConnection,
    { manager, stream }: { readonly manager: JetStreamManager; readonly stream: string },
  ) {
    this.#connection = connection;
    this.#manager = manager;
    this.#stream = stream;
  }

  async last(source: string): Promise<number | undefined> {
    const message = await this.#manager.streams.getMessage(this.#stream, { last_by_subj: subjects });
    if (message === null) return undefined;
    const event = message.json<Partial<CloudEvent> | null>();
    const revision = Number(event?.sequence);
    return event?.source === source && Number.isSafeInteger(revision) ? revision : undefined;
  }

  async send(events: readonly CloudEvent[]): Promise<void> {
    const client = jetstream(this.#connection, { timeout: timeoutMs });
    for (const event of events) {
      const header = headers();
      header.set('Content-Type', mediaType);
      await client.publish(`berth.${routeOf(event)}`, JSON.stringify(event), {
        msgID: event.id,
        headers: header,
        expect: { streamName: this.#stream },
      });
    }
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}
