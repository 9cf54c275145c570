// Messages of a real broker become jobs.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRabbitmq, type TestRabbitmq } from './test-rabbitmq.ts';
import {
  jobsIn,
  requestNumber,
  serverWithImage,
  sound,
  startAmqp,
  TestPublisher,
  testSettings,
  untilCommitted,
} from './testing.ts';

let broker: TestRabbitmq;
beforeAll(async () => {
  broker = await startRabbitmq();
}, 120_000);
afterAll(() => broker?.dispose());

describe('the intake', () => {
  it('makes one job of fifty deliveries of one message, and of two bodies that mean the same', async () => {
    await using scene = await sceneOf('fifty');
    const { server, settings, publisher } = scene;
    const reordered = Object.fromEntries(Object.entries({ ...sound, submitted_at: '2026-12-01T00:00:00Z' }).reverse());
    await Promise.all(Array.from({ length: 50 }, (_, i) => publisher.send(settings, i % 2 ? sound : reordered)));
    await publisher.send(settings, requestNumber(2));
    await untilCommitted(server, () => jobsIn(server).length === 2);
    await publisher.untilCount(settings.queue, 0);
    expect(jobsIn(server).map(({ metadata }) => metadata.name)).toEqual([
      `req-${sound.request_id}`,
      `req-${requestNumber(2).request_id}`,
    ]);
    expect(await publisher.count(settings.deadLetterQueue)).toBe(0);
  });
});

async function sceneOf(queue: string, changes = {}) {
  const server = await serverWithImage();
  const settings = testSettings(broker.url, queue, changes);
  const amqp = await startAmqp(server, settings);
  const publisher = await TestPublisher.connect(broker.url);
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
