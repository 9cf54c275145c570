// Results of ended jobs reach a real broker: once, or openly not.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { systemClock } from '../../../base/system.ts';
import type { JobResultDelivery } from '../../../api/resources/job.ts';
import { keys } from '../../../core/state/keys.ts';
import { decideAndCommit } from '../../decide.ts';
import { BrokerConnection } from '../../intake/amqp/broker-connection.ts';
import { ConfirmedPublisher } from '../../intake/amqp/confirmed-publisher.ts';
import { startRabbitmq, type TestRabbitmq } from '../../intake/amqp/test-rabbitmq.ts';
import {
  jobsIn,
  type Scene,
  sceneOf,
  sound,
  TestPublisher,
  type TestServer,
  untilCommitted,
} from '../../intake/amqp/testing.ts';
import { ResultOutbox } from './result-outbox.ts';

let broker: TestRabbitmq;
beforeAll(async () => {
  broker = await startRabbitmq();
}, 120_000);
afterAll(() => broker?.dispose());

const name = `req-${sound.request_id}`;

describe('the result of a job', () => {
  it('goes to the exchange and to reply_to, the same twice', async () => {
    await using scene = await sceneOf(broker.url, 'both');
    const { server, settings, publisher } = scene;
    const results = await queueFor(scene);
    const { queue: answers } = await publisher.channel.queueDeclare({ queue: '', exclusive: true });
    await publisher.send(settings, sound, { replyTo: answers, correlationId: 'seven' });
    await untilCommitted(server, () => jobsIn(server).length === 1);
    await server.client.cancelJob(name);
    const result = await publisher.next(results);
    const answer = await publisher.next(answers);
    expect(JSON.parse(String(result.body))).toMatchObject({
      schema_version: 'jobresult.v1',
      request_id: sound.request_id,
      repo_url: sound.repo_url,
      success: false,
      status: 'cancelled',
      started_at: null,
    });
    expect(result).toMatchObject({ exchange: settings.resultExchange, routingKey: 'jobresult.v1', durable: true });
    expect(answer).toMatchObject({ body: result.body, messageId: result.messageId, correlationId: 'seven' });
    await untilResult(server, { exchange: 'confirmed', reply: 'confirmed' });
    expect(await publisher.count(results)).toBe(0);
  });

  it('is dropped where the queue of reply_to is gone, and published all the same', async () => {
    await using scene = await sceneOf(broker.url, 'gone');
    const { server, settings, publisher } = scene;
    const results = await queueFor(scene);
    await publisher.send(settings, sound, { replyTo: 'nowhere' });
    await untilCommitted(server, () => jobsIn(server).length === 1);
    await server.client.cancelJob(name);
    await publisher.next(results);
    await untilResult(server, { exchange: 'confirmed', reply: 'dropped' });
  });

  it('that no queue takes is kept and told of, and sent when one does', async () => {
    await using scene = await sceneOf(broker.url, 'unrouted');
    const { server, settings, publisher, amqp } = scene;
    await publisher.send(settings, sound);
    await untilCommitted(server, () => jobsIn(server).length === 1);
    await server.client.cancelJob(name);
    await untilResult(server, { exchange: 'unrouted' });
    expect(amqp.report()).toContainEqual({
      name: 'amqp results',
      ok: false,
      message: '1 results have no queue that takes them',
    });
    const results = await queueFor(scene);
    await amqp.stop();
    await using again = await outboxOf(server, settings.resultExchange); // as after a restart
    expect(again.outbox.unrouted).toBe(1);
    expect((await publisher.next(results)).messageId).toBe(resultIn(server)?.messageId);
    await untilResult(server, { exchange: 'confirmed' });
    expect(again.outbox.unrouted).toBe(0);
  });

  it('is sent again, with the same body and message_id, when the broker dies before the confirm is recorded', async () => {
    await using scene = await sceneOf(broker.url, 'again');
    const { server, publisher, settings } = scene;
    const results = await queueFor(scene);
    await publisher.send(settings, sound);
    await untilCommitted(server, () => jobsIn(server).length === 1);
    await server.client.cancelJob(name);
    const first = await publisher.next(results);
    await untilResult(server, { exchange: 'confirmed' });
    // As if a crash had come before the record.
    await decideAndCommit(server.plane.decider, (snapshot) => {
      const entry = snapshot.get('job', keys.job('default', name));
      const result = entry?.value.status.result;
      if (!entry || !result) throw new Error('there is no result');
      const value = { ...entry.value, status: { ...entry.value.status, result: { ...result, exchange: 'waiting' } } };
      return {
        plan: { changes: [{ key: entry.key, ifRevision: entry.revision, value: value as typeof entry.value }] },
      };
    });
    await broker.kill();
    await broker.start();
    await using after = await TestPublisher.connect(broker.url);
    const second = await after.next(results);
    expect({ body: second.body, messageId: second.messageId }).toEqual({
      body: first.body,
      messageId: first.messageId,
    });
    await untilResult(server, { exchange: 'confirmed' });
  }, 120_000);
});

/** A queue for the results. */
async function queueFor({ publisher, settings }: Scene): Promise<string> {
  const queue = `${settings.queue}.results`;
  await publisher.channel.queueDeclare({ queue, durable: true });
  await publisher.channel.queueBind({ queue, exchange: settings.resultExchange, routingKey: 'jobresult.v1' });
  return queue;
}

function resultIn(server: TestServer): JobResultDelivery | undefined {
  return jobsIn(server)[0]?.status.result;
}

async function untilResult(server: TestServer, expected: Partial<JobResultDelivery>): Promise<void> {
  await untilCommitted(server, () => {
    const result = resultIn(server);
    return result !== undefined && result.exchange === expected.exchange && result.reply === expected.reply;
  });
}

async function outboxOf({ plane }: TestServer, exchange: string) {
  const connection = BrokerConnection.open({
    url: broker.url,
    name: 'test',
    clock: systemClock,
    log: silentLogger,
  });
  const publisher = new ConfirmedPublisher({ connection, clock: systemClock, prepare: async () => {} });
  const outbox = new ResultOutbox({
    decider: plane.decider,
    log: silentLogger,
    leads: () => true,
    publisher,
    exchange,
  });
  outbox.start();
  return {
    outbox,
    async [Symbol.asyncDispose]() {
      await outbox.stop();
      await publisher.close();
    },
  };
}
