// Messages of a real broker become jobs, once each, whatever fails in between.

import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../../base/test-ports.ts';
import { linesIn, testFolder, testSettings as auditSettings } from '../../audit/testing.ts';
import { testStore } from '../../testing.ts';
import { deadLetterId } from './dead-letter.ts';
import { startRabbitmq, type TestRabbitmq } from './test-rabbitmq.ts';
import {
  jobsIn,
  requestNumber,
  type Scene,
  sceneOf,
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
    await using scene = await sceneOf(broker.url, 'fifty');
    const { server, settings, publisher } = scene;
    const reordered = Object.fromEntries(Object.entries({ ...sound, submitted_at: '2026-12-01T00:00:00Z' }).reverse());
    await Promise.all(Array.from({ length: 50 }, (_, i) => publisher.send(settings, i % 2 ? sound : reordered)));
    await publisher.send(settings, requestNumber(2));
    await untilCommitted(server, () => jobsIn(server).length === 2);
    await publisher.untilCount(settings.queue, 0);
    expect(namesOf(scene)).toEqual([nameOf(sound), nameOf(requestNumber(2))].sort());
    expect(await publisher.count(settings.deadLetterQueue)).toBe(0);
  });

  it('makes one job when two control planes take copies of one message', async () => {
    const store = testStore();
    await using scene = await sceneOf(broker.url, 'two', {}, { store });
    await using other = await sceneOf(broker.url, 'two', {}, { store });
    const { settings, publisher } = scene;
    await Promise.all(Array.from({ length: 50 }, () => publisher.send(settings, sound)));
    await publisher.send(settings, requestNumber(2));
    await untilCommitted(other.server, () => jobsIn(other.server).length === 2);
    await publisher.untilCount(settings.queue, 0);
    expect(namesOf(scene)).toEqual([nameOf(sound), nameOf(requestNumber(2))].sort());
  });

  it('has a line in the audit log for each message that becomes a job, and for each that does not', async () => {
    const directory = testFolder();
    await using scene = await sceneOf(broker.url, 'audited', {}, { audit: auditSettings(directory) });
    const { server, settings, publisher } = scene;
    await publisher.send(settings, sound);
    await publisher.send(settings, { ...requestNumber(2), runs_on: 'no-such-image' });
    await publisher.untilCount(settings.deadLetterQueue, 1);
    await untilCommitted(server, () => jobsIn(server).length === 1);
    await publisher.untilCount(settings.queue, 0);
    const lines = linesIn(directory).filter(({ face }) => face === 'amqp');
    const about = { who: 'intake/amqp', verb: 'create', kind: 'job', project: settings.project };
    expect(lines).toHaveLength(2);
    expect(lines).toContainEqual(
      expect.objectContaining({ ...about, object: nameOf(sound), outcome: 'done', revision: expect.any(Number) }),
    );
    expect(lines).toContainEqual(expect.objectContaining({ ...about, outcome: 'refused' }));
  });

  it.each([
    ['an odd content type', { contentType: 'application/x-make' }],
    ['plain text', { contentType: 'text/plain' }],
    ['no content type', { contentType: undefined }],
    ['a place for the answer', { replyTo: 'answers', correlationId: '7' }],
  ])('takes a message with %s', async (name, properties) => {
    await using scene = await sceneOf(broker.url, `with ${name}`);
    await scene.publisher.send(scene.settings, sound, properties);
    await untilCommitted(scene.server, () => jobsIn(scene.server).length === 1);
    await scene.publisher.untilCount(scene.settings.queue, 0);
  });

  it('leaves the backlog in the broker while jobs wait for a place', async () => {
    await using scene = await sceneOf(broker.url, 'backlog', { waitingMax: 2 });
    const { server, settings, publisher, amqp } = scene;
    for (let i = 0; i < 20; i++) await publisher.send(settings, requestNumber(i));
    await untilCommitted(server, () => jobsIn(server).length >= 2);
    await publisher.untilConsumers(settings.queue, 0);
    const first = jobsIn(server).length;
    expect(first).toBeLessThanOrEqual(3); // two, and one that had been delivered
    expect(await publisher.count(settings.queue)).toBe(20 - first);
    expect(amqp.report()).toContainEqual({
      name: 'amqp intake',
      ok: true,
      message: `paused: ${first} jobs wait for a place`,
    });
    for (const { metadata } of jobsIn(server)) await server.client.cancelJob(metadata.name);
    await untilCommitted(server, () => jobsIn(server).length >= first + 2);
  });
});

it('a job has the trace of its message', async () => {
  await using scene = await sceneOf(broker.url, 'traced');
  const { server, settings, publisher } = scene;
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  await publisher.send(settings, sound, { headers: { traceparent } });
  await untilCommitted(server, () => jobsIn(server).length === 1);
  expect(jobsIn(server)[0]?.metadata.traceParent).toBe(traceparent);
});

describe('a message that makes no job goes to the dead letters', () => {
  it.each<[string, unknown, string, object?]>([
    ['empty', '', 'NotJson'],
    ['not JSON', 'make all', 'NotJson'],
    ['not UTF-8', Buffer.of(0x7b, 0xff, 0x7d), 'NotUtf8'],
    ['a key twice', '{"a":1,"a":2}', 'DuplicateKey'],
    ['1 MiB and a byte', JSON.stringify(sound).padEnd(1024 ** 2 + 1), 'TooLarge'],
    ['16 MiB', Buffer.alloc(16 * 1024 ** 2, ' '), 'TooLarge'],
    ['compressed', gzipSync(JSON.stringify(sound)), 'UnsupportedEncoding', { contentEncoding: 'gzip' }],
    ['an unknown label', { ...sound, runs_on: 'plan9' }, 'UnknownLabel'],
    ['an answer into the intake', sound, 'ReplyToRefused', { replyTo: 'refused' }],
    ['an answer into the dead letters', sound, 'ReplyToRefused', { replyTo: 'refused.dlq' }],
  ])('when it is: %s', async (_name, body, reason, properties = {}) => {
    await using scene = await sceneOf(broker.url, 'refused');
    const { server, settings, publisher } = scene;
    await publisher.send(settings, body, { messageId: 'own', headers: { 'x-trace': 't' }, ...properties });
    const letter = await publisher.next(settings.deadLetterQueue);
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    expect(letter).toMatchObject({
      routingKey: settings.routingKey,
      messageId: deadLetterId(bytes),
      ...properties,
      headers: { 'x-berth-reason': reason, 'x-trace': 't', 'x-berth-message-id': 'own' },
    });
    await publisher.untilCount(settings.queue, 0);
    expect(jobsIn(server)).toEqual([]);
  });

  it('with its bytes as they came', async () => {
    await using scene = await sceneOf(broker.url, 'bytes');
    const { settings, publisher } = scene;
    const body = Buffer.from('{ "a" : 1.0, "a":2 }');
    await publisher.send(settings, body, { contentType: undefined });
    expect((await publisher.next(settings.deadLetterQueue)).body).toEqual(body);
  });

  it('when its id was used for another request', async () => {
    await using scene = await sceneOf(broker.url, 'reused');
    const { settings, publisher } = scene;
    await publisher.send(settings, sound);
    await publisher.send(settings, { ...sound, commit_sha: 'a'.repeat(40) });
    const { headers } = await publisher.next(settings.deadLetterQueue);
    expect(headers).toMatchObject({ 'x-berth-reason': 'RequestIdReused' });
  });
});

describe('nothing is lost or doubled', () => {
  it('when the broker is killed between store and ack', async () => {
    const store = testStore();
    const commit = store.commit.bind(store);
    let killed = false;
    store.commit = async (conditions, writes) => {
      const result = await commit(conditions, writes);
      if (!killed && writes.some(({ key }) => key.startsWith('jobs/'))) {
        killed = true;
        await broker.kill();
      }
      return result;
    };
    await using scene = await sceneOf(broker.url, 'killed', {}, { store });
    await scene.publisher.send(scene.settings, sound).catch(() => undefined); // its confirm may be lost too
    await untilCommitted(scene.server, () => jobsIn(scene.server).length === 1);
    await broker.start();
    await using after = await publisherOf();
    await after.send(scene.settings, requestNumber(2));
    await untilCommitted(scene.server, () => jobsIn(scene.server).length === 2);
    await after.untilCount(scene.settings.queue, 0);
    expect(await after.count(scene.settings.deadLetterQueue)).toBe(0);
  }, 120_000);

  it('when the store cannot write for a while', async () => {
    const store = testStore();
    const commit = store.commit.bind(store);
    let failures = 3;
    store.commit = async (conditions, writes) => {
      if (failures > 0 && writes.some(({ key }) => key.startsWith('jobs/'))) {
        failures -= 1;
        throw new Error('the disk is away');
      }
      return commit(conditions, writes);
    };
    await using scene = await sceneOf(broker.url, 'store', {}, { store });
    await scene.publisher.send(scene.settings, sound);
    await untilCommitted(scene.server, () => jobsIn(scene.server).length === 1);
    await scene.publisher.untilCount(scene.settings.queue, 0);
    expect(await scene.publisher.count(scene.settings.deadLetterQueue)).toBe(0);
  }, 60_000);

  it('when the queue is deleted: it is declared again', async () => {
    await using scene = await sceneOf(broker.url, 'deleted');
    const { server, settings, publisher } = scene;
    await publisher.channel.queueDelete({ queue: settings.queue });
    await publisher.untilRouted(settings, sound);
    await untilCommitted(server, () => jobsIn(server).length === 1);
  }, 60_000);

  it('when a memory alarm blocks those that publish', async () => {
    await using scene = await sceneOf(broker.url, 'alarm');
    const { server, settings, publisher, amqp } = scene;
    await amqp.stopIntake();
    await publisher.send(settings, 'poison');
    await publisher.send(settings, sound);
    await broker.control('set_vm_memory_high_watermark', 'absolute', '1MB');
    const again = await startAmqp(server, settings);
    try {
      await untilCommitted(server, () => jobsIn(server).length === 1);
      expect(again.report().map(({ name }) => name)).toEqual(['amqp intake', 'amqp results']);
      await broker.control('set_vm_memory_high_watermark', 'absolute', '512MB');
      await publisher.untilCount(settings.deadLetterQueue, 1);
    } finally {
      await again.stop();
    }
  }, 120_000);
});

describe('the start', () => {
  it.each([
    ['a wrong password', 'guest:wrong@', '', 'AMQP_URL', 'ACCESS_REFUSED'],
    ['an unknown virtual host', 'guest:guest@', '/nowhere', 'AMQP_URL', 'NOT_ALLOWED'],
  ])('fails with %s, and says which variable', async (_name, user, path, variable, code) => {
    const url = `amqp://${user}127.0.0.1:${broker.port}${path}`;
    const server = await serverWithImage();
    const failure = await startAmqp(server, testSettings(url, 'start')).catch((error: unknown) => error);
    await server.close();
    expect(failure).toMatchObject({ message: expect.stringContaining(variable) });
    expect(JSON.stringify(failure) + String(failure)).not.toContain('wrong');
    expect(codesOf(failure)).toContain(code);
  });

  it('fails when another has the queue for itself', async () => {
    await using publisher = await publisherOf();
    await publisher.channel.queueDeclare({ queue: 'exclusive', exclusive: true });
    const server = await serverWithImage();
    await expect(startAmqp(server, testSettings(broker.url, 'exclusive'))).rejects.toThrow(
      'AMQP_QUEUE: the broker refuses queue "exclusive": RESOURCE_LOCKED',
    );
    await server.close();
  });

  it('uses a queue that exists with other arguments', async () => {
    await using publisher = await publisherOf();
    await publisher.channel.queueDeclare({ queue: 'quorum', durable: true, arguments: { 'x-queue-type': 'quorum' } });
    await using scene = await sceneOf(broker.url, 'quorum');
    await publisher.send(scene.settings, sound);
    await untilCommitted(scene.server, () => jobsIn(scene.server).length === 1);
  });

  it('goes on without a broker that is not reached, and says so', async () => {
    const server = await serverWithImage();
    const port = await freePort();
    const amqp = await startAmqp(server, testSettings(`amqp://user:secret@127.0.0.1:${port}`, 'away'));
    const [intake] = amqp.report();
    await amqp.stop();
    await server.close();
    expect(intake).toMatchObject({ ok: false, message: expect.stringContaining('ECONNREFUSED') });
    expect(intake?.message).not.toContain('secret');
  });
});

describe('dead letters', () => {
  it('are listed, shown, retried and dropped; copies of one message are one', async () => {
    await using scene = await sceneOf(broker.url, 'letters');
    const { server, settings, publisher, amqp } = scene;
    const unknown = { ...sound, runs_on: 'late' };
    for (const body of ['poison', 'poison', unknown]) await publisher.send(settings, body);
    await publisher.untilCount(settings.deadLetterQueue, 3);
    const { items, more } = await amqp.deadLetters.list();
    expect(more).toBe(false);
    expect(items).toMatchObject([
      { copies: 2, movedBy: 'berth', reason: 'NotJson', bytes: 6 },
      { copies: 1, reason: 'UnknownLabel', requestId: sound.request_id },
    ]);
    expect(items[0]).not.toHaveProperty('body');
    const [poison, late] = items.map(({ id }) => id);
    expect(await amqp.deadLetters.show(poison ?? '')).toMatchObject({ body: 'poison' });
    expect(await publisher.count(settings.deadLetterQueue)).toBe(3);
    await amqp.deadLetters.drop(poison ?? '');
    expect(await publisher.count(settings.deadLetterQueue)).toBe(1);
    await server.client.create('image', {
      metadata: { name: 'late' },
      spec: { source: 'file:///late', architecture: 'amd64', format: 'qcow2' },
    });
    await amqp.deadLetters.retry(late ?? '');
    await untilCommitted(server, () => jobsIn(server).length === 1);
    expect(await amqp.deadLetters.list()).toEqual({ items: [], more: false });
    await expect(amqp.deadLetters.show('none')).rejects.toThrow('there is no dead letter "none"');
  });

  it('of the broker itself are among them, and go back to where they came from', async () => {
    await using scene = await sceneOf(broker.url, 'expired', { waitingMax: 1 });
    const { server, settings, publisher, amqp } = scene;
    await publisher.send(settings, sound);
    await publisher.untilConsumers(settings.queue, 0);
    await publisher.send(settings, requestNumber(2), { expiration: '1' });
    await publisher.untilCount(settings.deadLetterQueue, 1);
    const { items } = await amqp.deadLetters.list();
    expect(items).toMatchObject([
      { copies: 1, movedBy: 'broker', reason: 'expired', requestId: requestNumber(2).request_id },
    ]);
    await server.client.cancelJob(nameOf(sound));
    await amqp.deadLetters.retry(items[0]?.id ?? '');
    await untilCommitted(server, () => jobsIn(server).length === 2);
  });
});

function nameOf({ request_id }: typeof sound): string {
  return `req-${request_id}`;
}

function namesOf({ server }: Scene): string[] {
  return jobsIn(server)
    .map(({ metadata }) => metadata.name)
    .sort();
}

async function publisherOf(): Promise<TestPublisher> {
  return TestPublisher.connect(broker.url);
}

function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  for (let each = error; each instanceof Error; each = each.cause)
    if ('code' in each && typeof each.code === 'string') codes.push(each.code);
  return codes;
}
