// A consumer of jobs-intake.ts, in a process of its own: the intake over a store that is durable, or a bare one that only acknowledges.

import { once } from 'node:events';
import { Connection } from 'rabbitmq-client';
import { silentLogger } from '../src/base/log.ts';
import { keys } from '../src/core/state/keys.ts';
import { Amqp } from '../src/server/intake/amqp/amqp.ts';
import { brokerAt } from '../src/server/intake/amqp/broker-connection.ts';
import { serverWithImage, testSettings } from '../src/server/intake/amqp/testing.ts';
import { openStore } from '../src/store/open.ts';

export interface ConsumerInput {
  readonly kind: 'intake' | 'bare';
  readonly url: string;
  readonly queue: string;
  /** Of the intake. */
  readonly store?: string;
  /** Of jobs, or of messages, after which it is done. */
  readonly count: number;
}

export interface ConsumerMessage {
  readonly type: 'ready' | 'done';
  readonly tookMs: number;
}

/** The broker's limit, with which the intake never pauses. Above what is measured, so that no consumer waits for the round trip of its acknowledgements. */
const prefetchMax = 65_535;

process.once('disconnect', () => process.exit(0));
process.once(
  'message',
  (input: ConsumerInput) => void (input.kind === 'bare' ? consumeBare(input) : consumeJobs(input)),
);

async function consumeJobs({ url, queue, store, count }: ConsumerInput): Promise<void> {
  const server = await serverWithImage(store === undefined ? {} : { store: await openStore(store) });
  const parts = {
    settings: testSettings(url, queue, { waitingMax: prefetchMax }),
    decider: server.plane.decider,
    log: silentLogger,
    leads: () => false,
    open: brokerAt(url, { clock: server.plane.decider.clock, log: silentLogger }),
  };
  const prefix = keys.job(parts.settings.project, '');
  await (await Amqp.start(parts)).stop(); // declares
  await turnOf(async () => {
    const names = new Set<string>();
    const stored = new Promise<void>((resolve) => {
      server.plane.decider.cache.onCommitted((key) => {
        if (key.startsWith(prefix)) names.add(key);
        if (names.size === count) resolve();
      });
    });
    await Amqp.start(parts);
    await stored;
  });
}

async function consumeBare({ url, queue, count }: ConsumerInput): Promise<void> {
  const connection = new Connection(url);
  const channel = await connection.acquire();
  const exchange = `${queue}.exchange`;
  await channel.exchangeDeclare({ exchange, type: 'direct', durable: true });
  await channel.queueDeclare({ queue, durable: true });
  await channel.queueBind({ exchange, queue, routingKey: 'jobrequest.v1' });
  await turnOf(async () => {
    await channel.basicQos({ prefetchCount: prefetchMax });
    let seen = 0;
    await new Promise<void>((resolve, reject) => {
      const consuming = channel.basicConsume({ queue }, ({ deliveryTag }) => {
        channel.basicAck({ deliveryTag });
        seen += 1;
        if (seen === count) resolve();
      });
      consuming.catch(reject);
    });
  });
}

async function turnOf(consume: () => Promise<void>): Promise<void> {
  tell({ type: 'ready', tookMs: 0 });
  await once(process, 'message');
  const startedAt = performance.now();
  await consume();
  tell({ type: 'done', tookMs: performance.now() - startedAt });
}

function tell(message: ConsumerMessage): void {
  process.send?.(message);
}
