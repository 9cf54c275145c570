// A server that is killed while it takes messages and sends results: every message has one job, and every job one result.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient } from '../src/api/client/client.ts';
import { freePort } from '../src/base/test-ports.ts';
import { startRabbitmq, type TestRabbitmq } from '../src/server/intake/amqp/test-rabbitmq.ts';
import { requestNumber, TestPublisher } from '../src/server/intake/amqp/testing.ts';
import { type BerthProcess, runBerth, startBerth } from './processes.ts';

const count = 40;
const requestIds = Array.from({ length: count }, (_, i) => requestNumber(i).request_id);
const to = { exchange: 'solstice.jobs', routingKey: 'jobrequest.v1' };

let broker: TestRabbitmq;
let directory: string;
beforeAll(async () => {
  broker = await startRabbitmq();
  directory = await mkdtemp(join(tmpdir(), 'berth-amqp-'));
}, 120_000);
afterAll(async () => {
  await broker?.dispose();
  await rm(directory, { recursive: true, force: true });
});

describe('a server with a broker', () => {
  it('loses and doubles nothing when it is killed', async () => {
    const port = await freePort();
    const { start, client, stop } = await serverOn(port);
    let server = await start();
    await using publisher = await TestPublisher.connect(broker.url);
    await publisher.channel.queueDeclare({ queue: 'results', durable: true });
    await publisher.channel.queueBind({ queue: 'results', exchange: to.exchange, routingKey: 'jobresult.v1' });
    try {
      const watching = firstOf(client.watch('job', { revision: 0 }));
      await Promise.all(requestIds.map((_, i) => publisher.send(to, requestNumber(i))));
      await watching;
      await server.kill();
      server = await start();
      let jobs = await client.list('job', { limit: 1_000 });
      while (jobs.items.length < count) jobs = await client.list('job', { limit: 1_000 });
      await publisher.untilCount('solstice.jobs.v1', 0);
      expect(jobs.items.map(({ metadata }) => metadata.name).sort()).toEqual(requestIds.map((id) => `req-${id}`));
      expect(await publisher.count('solstice.jobs.v1.dlq')).toBe(0);

      await Promise.all(jobs.items.map(({ metadata }) => client.cancelJob(metadata.name)));
      await publisher.untilAtLeast('results', 1);
      await server.kill();
      server = await start();
      const bodies = new Map<string, string>();
      while (bodies.size < count) {
        const { messageId = '', body } = await publisher.next('results');
        expect(bodies.get(messageId) ?? String(body)).toBe(String(body)); // one that comes again is the same
        bodies.set(messageId, String(body));
      }
      const answered = [...bodies.values()].map((body) => JSON.parse(body).request_id);
      expect(answered.sort()).toEqual(requestIds);
    } finally {
      await stop(server);
    }
  }, 120_000);

  it('does not start when the broker refuses it, and does not show the password', async () => {
    const url = `amqp://guest:open-sesame@127.0.0.1:${broker.port}`;
    const words = ['server', '--listen', `127.0.0.1:${await freePort()}`, '--data-dir', join(directory, 'refused')];
    const { code, stdout, stderr } = await runBerth(words, { AMQP_URL: url });
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('AMQP_URL: the broker refuses'),
    });
    expect(stdout + stderr).not.toContain('open-sesame');
  });
});

async function serverOn(port: number) {
  const dataDirectory = join(directory, 'server');
  const config = join(directory, 'server.yaml');
  const imageMap = join(directory, 'images.yaml');
  await writeFile(
    imageMap,
    'default_label: ubuntu-22.04\nimages:\n  ubuntu-22.04:\n    source: file:///images/none.qcow2\n    local_path: /images/none.qcow2\n    nocloud: true\n',
  );
  await writeFile(
    config,
    JSON.stringify({ listen: `127.0.0.1:${port}`, dataDirectory, imageMap, maxConcurrency: 1_000, amqpPrefetch: 64 }),
  );
  const start = (): Promise<BerthProcess> =>
    startBerth(['server', '--config', config], /listens on/, { AMQP_URL: broker.url });
  const first = await start();
  const token = (await readFile(join(dataDirectory, 'operator.token'), 'utf8')).trim();
  await first.stop();
  const client = createClient({
    fetch: (url, init) => fetch(url, init),
    url: `http://127.0.0.1:${port}`,
    token,
  });
  return { start, client, stop: (server: BerthProcess) => server.stop() };
}

async function firstOf(items: AsyncIterable<unknown>): Promise<void> {
  await items[Symbol.asyncIterator]().next();
}
