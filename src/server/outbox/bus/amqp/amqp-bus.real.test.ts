// A real RabbitMQ gets every event, also when it is restarted.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CloudEvent } from '../../../../api/news/cloud-event.ts';
import { silentLogger } from '../../../../base/log.ts';
import { systemClock } from '../../../../base/system.ts';
import { createMemoryStore } from '../../../../store/memory/memory-store.ts';
import { TestPublisher } from '../../../intake/amqp/testing.ts';
import { startRabbitmq, type TestRabbitmq } from '../../../intake/amqp/test-rabbitmq.ts';
import { busSettingsOf } from '../bus-settings.ts';
import { putEvents, startBus, testDecider, traceParent } from '../testing.ts';
import { openAmqp, roundsOf } from './amqp-bus.ts';

let broker: TestRabbitmq;
beforeAll(async () => {
  broker = await startRabbitmq();
}, 120_000);
afterAll(async () => {
  await broker?.dispose();
  rmSync(folder, { recursive: true, force: true });
});
const folder = mkdtempSync(join(tmpdir(), 'berth-bus-'));
const passwordFile = join(folder, 'password');
writeFileSync(passwordFile, 'guest');

const queue = 'events.all';
const warned: string[] = [];
const log = { ...silentLogger, with: () => log, warn: (message: string) => void warned.push(message) };

function open() {
  const [settings] = busSettingsOf([
    { kind: 'amqp', url: `amqp://127.0.0.1:${broker.port}`, user: 'guest', passwordFile },
  ]);
  if (!settings) throw new Error('no event bus is configured');
  return openAmqp(settings, { clock: systemClock, log });
}

const seen = new Set<string>();

/** Takes what the queue has next, as a reader should: a broker that was killed gives again what was taken shortly before. */
async function take(count: number) {
  await using reader = await TestPublisher.connect(broker.url);
  const messages = [];
  while (messages.length < count) {
    const { body, ...message } = await reader.next(queue);
    const event = JSON.parse(String(body)) as CloudEvent;
    if (!seen.has(event.id)) messages.push({ ...message, event });
    seen.add(event.id);
  }
  return messages;
}

describe('a topic exchange of AMQP', () => {
  it('gets events in structured mode, and those that wait when the broker is back', async () => {
    const decider = testDecider(createMemoryStore(), systemClock);
    const bus = startBus(decider, open);
    await putEvents(decider, ['Unwanted']);
    await expect.poll(() => bus.report()[0]?.message, { timeout: 20_000 }).toBe('events are sent; 0 events wait');
    expect(warned).toContain('no queue takes some events of the event bus: bind one to its exchange');

    {
      await using reader = await TestPublisher.connect(broker.url);
      await reader.channel.queueDeclare({ queue, durable: true });
      await reader.channel.queueBind({ queue, exchange: 'berth', routingKey: 'events.default.#' });
    }
    await putEvents(decider, ['A', 'B']);
    const [first, second] = await take(2);
    expect(first).toMatchObject({
      routingKey: 'events.default.task.A',
      messageId: first?.event.id,
      givenContentType: 'application/cloudevents+json; charset=utf-8', // as the reader's channel calls it
      durable: true,
      headers: { traceparent: traceParent },
    });
    expect(first?.event.traceparent).toBe(traceParent);
    expect(second?.event).toMatchObject({ type: 'berth.v1.task.B', data: { subject: { name: 'a' } } });

    await broker.kill();
    await putEvents(decider, ['C', 'D']);
    await expect.poll(() => bus.report()[0]?.ok, { timeout: 60_000 }).toBe(false);
    await broker.start();
    const later = await take(2);
    expect(later.map(({ event }) => event.data.reason)).toEqual(['C', 'D']);
    await bus.stop();
  }, 180_000);
});

describe('rounds', () => {
  it('have one event of each subject, in order', () => {
    const event = (id: string, partitionkey: string) => ({ id, partitionkey }) as CloudEvent;
    const rounds = roundsOf([event('1', 'a'), event('2', 'a'), event('3', 'b'), event('4', 'a')]);
    expect(rounds.map((round) => round.map(({ id }) => id))).toEqual([['1', '3'], ['2'], ['4']]);
  });
});
