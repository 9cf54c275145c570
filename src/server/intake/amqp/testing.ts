// A broker, a control plane over the memory store, and a publisher, for tests of the intake.

import { type Channel, Connection, type SyncMessage } from 'rabbitmq-client';
import { silentLogger } from '../../../base/log.ts';
import { system } from '../../../base/system.ts';
import { parse } from '../../../api/parse.ts';
import type { Job } from '../../../api/resources/job.ts';
import { testImage } from '../../../core/testing.ts';
import { ServerConfig } from '../../config.ts';
import { startTestServer } from '../../testing.ts';
import { Amqp } from './amqp.ts';
import { type AmqpSettings, amqpSettingsOf } from './amqp-settings.ts';
import { brokerAt } from './broker-connection.ts';
import { keepBytes } from './message-bytes.ts';

export const sound = {
  schema_version: 'jobrequest.v1',
  request_id: '0b2a1f64-6a5e-4a53-9f0a-6f6f5e1d2c3b',
  source: 'github',
  repo_url: 'http://git.test/app.git',
  commit_sha: 'c0ffee'.padEnd(40, '0'),
  runs_on: 'ubuntu-22.04',
  submitted_at: '2026-11-26T03:00:00Z',
};

export function requestNumber(number: number): typeof sound {
  return { ...sound, request_id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}` };
}

export type TestServer = Awaited<ReturnType<typeof startTestServer>>;

/** With an image that is called `ubuntu-22.04`, and no host. */
export async function serverWithImage(options: Parameters<typeof startTestServer>[0] = {}): Promise<TestServer> {
  const server = await startTestServer(options);
  if (server.plane.decider.cache.imageByName('ubuntu-22.04')) return server;
  const { metadata, spec } = testImage('jammy', { aliases: ['ubuntu-22.04'] });
  await server.client.create('image', { metadata: { name: metadata.name }, spec });
  return server;
}

/** Settings of a queue of its own. */
export function testSettings(url: string, queue: string, changes: Partial<AmqpSettings> = {}): AmqpSettings {
  const config = parse(ServerConfig, { amqpUrl: url, amqpQueue: queue, amqpExchange: `${queue}.exchange` });
  const settings = amqpSettingsOf(config, undefined);
  if (!settings) throw new Error('no broker is configured');
  return { ...settings, ...changes };
}

export function startAmqp(server: TestServer, settings: AmqpSettings, leads = true): Promise<Amqp> {
  const { decider, audit } = server.plane;
  const open = brokerAt(settings.url, { clock: decider.clock, log: silentLogger, tls: settings.tls });
  return Amqp.start({ settings, decider, log: silentLogger, leads: () => leads, open, audit: audit?.parts });
}

/** Resolves when `holds` does, looking after each commit. */
export async function untilCommitted(server: TestServer, holds: () => boolean): Promise<void> {
  if (holds()) return;
  await new Promise<void>((resolve) => {
    const forget = server.plane.decider.cache.onCommitted(() => {
      if (!holds()) return;
      forget();
      resolve();
    });
  });
}

export function jobsIn({ plane }: TestServer): Job[] {
  return [...plane.decider.cache.listCommitted('job')].map(({ value }) => value);
}

export type Scene = Awaited<ReturnType<typeof sceneOf>>;

/** A control plane that takes messages from a queue of its own, and a publisher. */
export async function sceneOf(
  url: string,
  queue: string,
  changes: Partial<AmqpSettings> = {},
  options: Parameters<typeof startTestServer>[0] = {},
) {
  const server = await serverWithImage(options);
  const settings = testSettings(url, queue, changes);
  const amqp = await startAmqp(server, settings);
  const publisher = await TestPublisher.connect(url);
  return {
    server,
    settings,
    amqp,
    publisher,
    async [Symbol.asyncDispose]() {
      await publisher.close();
      await amqp.stop();
      await server.close();
    },
  };
}

/** A client of the broker, as publishers have one. */
export class TestPublisher {
  readonly #connection: Connection;
  readonly #channel: Channel;

  private constructor(connection: Connection, channel: Channel) {
    this.#connection = connection;
    this.#channel = channel;
  }

  static async connect(url: string): Promise<TestPublisher> {
    const connection = new Connection(url);
    connection.on('error', () => {}); // brokers under test are killed
    const channel = await connection.acquire();
    keepBytes(channel);
    await channel.confirmSelect();
    return new TestPublisher(connection, channel);
  }

  get channel(): Channel {
    return this.#channel;
  }

  /** Confirmed by the broker. */
  async send(
    { exchange, routingKey }: Pick<AmqpSettings, 'exchange' | 'routingKey'>,
    body: unknown,
    properties: object = {},
  ): Promise<void> {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    await this.#channel.basicPublish(
      { exchange, routingKey, durable: true, contentType: 'application/json', ...properties },
      bytes,
    );
  }

  /** The next message of a queue, waiting for it. */
  async next(queue: string): Promise<SyncMessage> {
    for (;;) {
      const message = await this.#channel.basicGet({ queue, noAck: true });
      if (message) return message;
      await system.turn(); // each look is a round trip to the broker
    }
  }

  async count(queue: string): Promise<number> {
    return (await this.#channel.queueDeclare({ queue, passive: true })).messageCount;
  }

  /** Until that many messages are ready in the queue. */
  async untilCount(queue: string, count: number): Promise<void> {
    while ((await this.count(queue)) !== count) await system.turn();
  }

  async untilAtLeast(queue: string, count: number): Promise<void> {
    while ((await this.count(queue)) < count) await system.turn();
  }

  async untilConsumers(queue: string, count: number): Promise<void> {
    while ((await this.#channel.queueDeclare({ queue, passive: true })).consumerCount !== count) await system.turn();
  }

  /** Sends it until a queue takes it. */
  async untilRouted(to: Pick<AmqpSettings, 'exchange' | 'routingKey'>, body: unknown): Promise<void> {
    let returned = true;
    const note = (): void => void (returned = true);
    this.#channel.on('basic.return', note);
    while (returned) {
      returned = false;
      await this.send(to, body, { mandatory: true });
      await system.turn();
    }
    this.#channel.off('basic.return', note);
  }

  async close(): Promise<void> {
    this.#connection.unsafeDestroy();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
