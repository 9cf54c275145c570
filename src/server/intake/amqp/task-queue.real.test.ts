// Messages of a real broker become tasks, once each, and their results come back.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import { silentLogger } from '../../../base/log.ts';
import { ServerConfig } from '../../config.ts';
import { startTestServer, testRegistration } from '../../testing.ts';
import { taskSettingsOf } from './amqp-settings.ts';
import { brokerAt } from './broker-connection.ts';
import { TaskQueue } from './task-queue.ts';
import { type TestRabbitmq, startRabbitmq } from './test-rabbitmq.ts';
import { TestPublisher, untilCommitted } from './testing.ts';

let broker: TestRabbitmq;
beforeAll(async () => {
  broker = await startRabbitmq();
}, 120_000);
afterAll(() => broker?.dispose());

const asked = { requested_cpu: 2, requested_memory: 512, requested_pool: 'metal', dedicated: false };

async function sceneOf(name: string, config: object = {}) {
  const server = await startTestServer();
  await server.client.create('host', {
    metadata: { name: 'rack-1', labels: { ip: '10.0.0.1' } },
    spec: { pool: 'metal' },
  });
  await server.agentClient('rack-1').register(testRegistration({ capacity: { VCPU: 4, MEMORY_MB: 4096 } }));
  const settings = taskSettingsOf(
    parse(ServerConfig, {
      scheduleAmqpUrl: broker.url,
      scheduleAmqpExchange: `${name}.tasks`,
      scheduleAmqpQueue: `${name}.schedule`,
      scheduleAttemptsMax: 2,
      scheduleRetryDelayMs: 100,
      ...config,
    }),
  );
  if (settings === undefined) throw new Error('no broker is configured');
  const { decider } = server.plane;
  const log = silentLogger;
  const start = () =>
    TaskQueue.start({
      settings,
      decider,
      log,
      ttlMs: 60_000,
      open: brokerAt(settings.url, { clock: decider.clock, log }),
    });
  let queue = await start();
  const publisher = await TestPublisher.connect(broker.url);
  const results = `${name}.results`;
  await publisher.channel.queueDeclare({ queue: results, durable: true });
  await publisher.channel.queueBind({ queue: results, exchange: settings.exchange, routingKey: 'task.result' });
  return {
    server,
    settings,
    publisher,
    tasks: () => [...decider.cache.listCommitted('task')].map(({ value }) => value),
    events: () => [...decider.cache.listCommitted('event')].map(({ value }) => value.spec),
    result: async (from = results) => {
      const message = await publisher.next(from);
      return { ...message, json: JSON.parse(String(message.body)) };
    },
    async restart() {
      await queue.stop();
      queue = await start();
    },
    queue: () => queue,
    async [Symbol.asyncDispose]() {
      await publisher.close();
      await queue.stop();
      await server.close();
    },
  };
}

describe('the task queue', () => {
  it('places the task of a message, and publishes the result', async () => {
    await using scene = await sceneOf('plain');
    const { publisher, settings } = scene;
    await publisher.send(settings, { ...asked, task_id: 'node-7' }, { correlationId: 'c-1' });
    const { json, correlationId } = await scene.result();
    expect(json).toEqual({
      task_id: 'node-7',
      id: scene.tasks()[0]?.metadata.id,
      status: 'completed',
      result: { name: 'rack-1', ip: '10.0.0.1', pool: 'metal', cpu: 2, memory: 512, held_until: expect.any(String) },
    });
    expect(correlationId).toBe('c-1');
    await publisher.untilCount(settings.queue, 0);
    expect(scene.queue().report()).toEqual([
      { name: 'task queue', ok: true, message: expect.stringContaining('consumes') },
    ]);
  });

  it('sends the result to the queue that the message names', async () => {
    await using scene = await sceneOf('replies');
    const { publisher, settings } = scene;
    await publisher.channel.queueDeclare({ queue: 'own', durable: true });
    await publisher.send(settings, asked, { replyTo: 'own' });
    await publisher.send(settings, { ...asked, reply_to: 'own' });
    for (const _ of [1, 2]) expect((await scene.result('own')).json.status).toBe('completed');
  });

  it.each<[string, object, object]>([
    ['its message id', {}, { messageId: 'one' }],
    ['its task_id', { task_id: 'one' }, {}],
  ])('makes one task of twenty deliveries that share %s', async (name, body, properties) => {
    await using scene = await sceneOf(`once by ${name}`);
    const { publisher, settings } = scene;
    await Promise.all(Array.from({ length: 20 }, () => publisher.send(settings, { ...asked, ...body }, properties)));
    const ids = new Set<string>();
    for (let i = 0; i < 20; i++) ids.add((await scene.result()).json.id);
    expect(ids.size).toBe(1);
    expect(scene.tasks()).toHaveLength(1);
  });

  it('tries again when no host has room, and places what fits by then', async () => {
    await using scene = await sceneOf('later', { scheduleAttemptsMax: 1_000 });
    const { server, publisher, settings } = scene;
    await publisher.send(settings, { ...asked, requested_cpu: 4, task_id: 'first' });
    const { json: first } = await scene.result();
    await publisher.send(settings, { ...asked, task_id: 'second' });
    await untilCommitted(server, () => scene.tasks().some(({ status }) => status.phase === 'Failed'));
    const held = scene.tasks().find(({ metadata }) => metadata.id === first.id)?.metadata.name ?? '';
    await server.client.delete('task', held);
    expect((await scene.result()).json).toMatchObject({ task_id: 'second', status: 'completed' });
  });

  it('gives up after the last attempt: a result, an event, and a dead letter', async () => {
    await using scene = await sceneOf('never');
    const { publisher, settings } = scene;
    await publisher.send(settings, { ...asked, requested_cpu: 64, task_id: 'large' }, { messageId: 'm' });
    const { json } = await scene.result();
    expect(json).toMatchObject({
      task_id: 'large',
      status: 'failed',
      error: 'No available nodes: 0 of 1 host: 1 InsufficientCpu',
    });
    const letter = await publisher.next(settings.deadLetterQueue);
    expect(letter.headers).toMatchObject({ 'x-berth-reason': 'NoAvailableNodes', 'x-berth-attempt': 2 });
    expect(scene.tasks()).toHaveLength(2);
    expect(scene.events()).toContainEqual(
      expect.objectContaining({
        type: 'Warning',
        reason: 'ScheduleGivenUp',
        message: 'request large was given up after 2 attempts: No available nodes: 0 of 1 host: 1 InsufficientCpu',
      }),
    );
    await publisher.untilCount(settings.queue, 0);
  });

  it('gives up a message above the quota of its project', async () => {
    await using scene = await sceneOf('quota', { scheduleAmqpProject: 'small' });
    const { server, publisher, settings } = scene;
    await server.client.create('project', { metadata: { name: 'small' }, spec: { quota: { VCPU: 1 } } });
    await publisher.send(settings, { ...asked, task_id: 'much' });
    expect((await scene.result()).json).toMatchObject({
      task_id: 'much',
      status: 'failed',
      error: expect.stringMatching(/^No available nodes: project "small" has 0 of 1 VCPU/),
    });
    await publisher.next(settings.deadLetterQueue);
    expect(scene.events()).toContainEqual(expect.objectContaining({ reason: 'ScheduleGivenUp' }));
    expect(scene.tasks().map(({ status }) => status.phase)).toEqual(['Failed', 'Failed']);
  });

  it.each<[string, unknown, string, object?]>([
    ['empty', '', 'NotJson'],
    ['not JSON', 'two CPUs', 'NotJson'],
    ['a key twice', '{"requested_cpu":1,"requested_cpu":2}', 'DuplicateKey'],
    ['64 KiB and a byte', JSON.stringify(asked).padEnd(64 * 1024 + 1), 'TooLarge'],
    ['a list', [asked], 'InvalidRequest'],
    ['no CPUs', { requested_memory: 64 }, 'InvalidRequest'],
    ['half a CPU', { ...asked, requested_cpu: 0.5 }, 'InvalidRequest'],
    ['an unknown field', { ...asked, name: 'x' }, 'InvalidRequest'],
    ['an unknown pool', { ...asked, requested_pool: 'nowhere' }, 'TaskRefused'],
    ['compressed', asked, 'UnsupportedEncoding', { contentEncoding: 'gzip' }],
    ['answered into the task queue', asked, 'ReplyToRefused', { replyTo: 'bad.schedule' }],
    ['answered into the retry queue', { ...asked, reply_to: 'bad.schedule.retry' }, 'ReplyToRefused'],
  ])('buries a message at once that is: %s', async (_name, body, reason, properties = {}) => {
    await using scene = await sceneOf('bad');
    const { publisher, settings } = scene;
    await publisher.send(settings, body, properties);
    const letter = await publisher.next(settings.deadLetterQueue);
    expect(letter.headers).toMatchObject({ 'x-berth-reason': reason });
    expect(scene.tasks()).toEqual([]);
  });

  it('continues after the broker was killed', async () => {
    await using scene = await sceneOf('killed');
    await scene.publisher.send(scene.settings, { ...asked, task_id: 'before' });
    await scene.result();
    await broker.kill();
    await broker.start();
    await using again = await TestPublisher.connect(broker.url);
    await again.send(scene.settings, { ...asked, task_id: 'after' });
    const seen: unknown[] = []; // the broker may give the earlier result again
    while (!seen.includes('after')) seen.push(JSON.parse(String((await again.next('killed.results')).body)).task_id);
    expect(scene.tasks()).toHaveLength(2);
  }, 120_000);

  it('does not start when the broker refuses, and names the setting', async () => {
    const server = await startTestServer();
    const settings = taskSettingsOf(
      parse(ServerConfig, { scheduleAmqpUrl: broker.url.replace('guest:guest', 'guest:wrong') }),
    );
    if (settings === undefined) throw new Error('no broker is configured');
    const { decider } = server.plane;
    const open = brokerAt(settings.url, { clock: decider.clock, log: silentLogger });
    const failure: unknown = await TaskQueue.start({ settings, decider, log: silentLogger, ttlMs: 1_000, open }).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ code: 'InvalidRequest', field: 'scheduleAmqpUrl' });
    expect(String(failure)).not.toContain('wrong');
    await server.close();
  });
});
