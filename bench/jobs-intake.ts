// How fast messages of a broker become durable jobs, over a consumer that only acknowledges; and what a control plane holds while its intake
// pauses before a long queue. Both consumers are processes of their own, on the same broker, one after the other.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createClient } from '../src/api/client/client.ts';
import { testImage } from '../src/core/testing.ts';
import { startRabbitmq } from '../src/server/intake/amqp/test-rabbitmq.ts';
import { requestNumber, TestPublisher } from '../src/server/intake/amqp/testing.ts';
import type { ConsumerInput, ConsumerMessage } from './jobs-consumer.ts';
import { residentMb } from './process-memory.ts';
import { type Emit, median } from './row.ts';
import { buildProduct, startServerProcess } from './server-process.ts';

const suite = 'jobs';
const messages = 10_000;
const queued = 100_000;
const rounds = 3;
const publishesAtOnce = 500;

export async function measureIntake(directory: string, emit: Emit): Promise<void> {
  buildProduct();
  const broker = await startRabbitmq();
  try {
    const [ours, bare]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const store = `sqlite:${join(directory, `intake-${round}.db`)}`;
      ours.push(await consumeAll(broker.url, { kind: 'intake', queue: `intake-${round}`, store }));
      bare.push(await consumeAll(broker.url, { kind: 'bare', queue: `bare-${round}` }));
    }
    const [value, peer] = [median(ours), median(bare)];
    emit({
      suite,
      name: 'intake_ratio',
      value: value / peer,
      unit: 'ratio',
      better: 'higher',
      goal: 0.6,
      peer: 1,
      ratio: value / peer,
    });
    process.stderr.write(`  ${value.toFixed(0)} jobs per second, ${peer.toFixed(0)} acknowledgements per second\n`);
    await measurePaused(broker.url, directory, emit);
  } finally {
    await broker.dispose();
  }
}

type Consumer = Omit<ConsumerInput, 'url' | 'count'>;

/** Messages per second, from the start of the consumer to the last acknowledgement. */
async function consumeAll(url: string, consumer: Consumer): Promise<number> {
  const child = await startConsumer({ ...consumer, url, count: messages });
  try {
    await publish(url, consumer.queue, messages);
    const { tookMs } = await child.go();
    return (messages * 1000) / tookMs;
  } finally {
    await child.end();
  }
}

/** The product, with its default of two jobs at a time and no host: it pauses after two. */
async function measurePaused(url: string, directory: string, emit: Emit): Promise<void> {
  const queue = 'paused';
  const env = { AMQP_URL: url, AMQP_QUEUE: queue, AMQP_EXCHANGE: `${queue}.exchange` };
  const server = await startServerProcess(join(directory, 'paused'), { env });
  try {
    const { metadata, spec } = testImage('jammy', { aliases: ['ubuntu-22.04'] });
    const client = createClient({ fetch: (...call) => fetch(...call), url: server.url, token: server.operatorToken });
    await client.create('image', { metadata: { name: metadata.name }, spec });
    await publish(url, queue, queued);
    while ((await client.list('job')).items.length < 2) await sleep(100);
    await sleep(5_000); // let it come to rest
    const value = await residentMb(server.pid);
    emit({ suite, name: 'intake_rss_mb', value, unit: 'MiB', better: 'lower', goal: 200 });
  } finally {
    await server.close();
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function publish(url: string, queue: string, count: number): Promise<void> {
  const publisher = await TestPublisher.connect(url);
  const to = { exchange: `${queue}.exchange`, routingKey: 'jobrequest.v1' };
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) await publisher.send(to, requestNumber(next++));
  };
  await Promise.all(Array.from({ length: publishesAtOnce }, work));
  await publisher.close();
}

/** Its queue is declared when this resolves; it consumes from `go` on. */
async function startConsumer(input: ConsumerInput) {
  const child = fork(join(import.meta.dirname, 'jobs-consumer.ts'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const next = async (type: ConsumerMessage['type']): Promise<ConsumerMessage> => {
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('the consumer ended')));
    const [message]: ConsumerMessage[] = await Promise.race([once(child, 'message'), ended]);
    if (message?.type !== type) throw new Error(`expected ${type}, got ${JSON.stringify(message)}`);
    return message;
  };
  const ready = next('ready');
  child.send(input);
  await ready;
  return {
    pid: child.pid ?? 0,
    go() {
      const done = next('done');
      child.send('go');
      return done;
    },
    async end() {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}
