// The NATS recipe of docs/event-bus.md with a whole server, which is restarted: the events of the fleet, the report and the metrics.

import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { createClient } from '../src/api/client/client.ts';
import { CloudEvent } from '../src/api/news/cloud-event.ts';
import { parse } from '../src/api/parse.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemFetch } from '../src/base/system.ts';
import { ServerConfig } from '../src/server/config.ts';
import { startNats, type TestNats } from '../src/server/outbox/bus/nats/test-nats.ts';
import { startServer } from '../src/server/run.ts';

let nats: TestNats;
let directory: string;
beforeAll(async () => {
  nats = await startNats();
  directory = await mkdtemp(join(tmpdir(), 'berth-event-bus-'));
});
afterAll(async () => {
  await nats?.dispose();
  await rm(directory, { recursive: true, force: true });
});

async function start() {
  const document = await readFile(new URL('../docs/event-bus.md', import.meta.url), 'utf8');
  const recipe = /```yaml\n([\s\S]*?)```/.exec(document)?.[1] ?? '';
  const config = parseYaml(recipe.replace('nats://127.0.0.1:4222', nats.url)) as object;
  const own = { listen: '127.0.0.1:0', dataDirectory: join(directory, 'server') };
  const server = await startServer(parse(ServerConfig, { ...config, ...own }), { log: silentLogger });
  const token = server.operatorToken;
  const client = createClient({ fetch: systemFetch, url: server.url, token });
  const text = async (path: string): Promise<string> => {
    const answer = await systemFetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
    return answer.text();
  };
  return { server, client, text };
}

async function stored(): Promise<readonly CloudEvent[]> {
  const connection = await connect({ servers: nats.url.slice('nats://'.length) });
  try {
    const { streams } = await jetstreamManager(connection);
    const { state } = await streams.info('BERTH_EVENTS');
    const events = [];
    for (let seq = 1; seq <= state.last_seq; seq++) {
      const message = await streams.getMessage('BERTH_EVENTS', { seq });
      if (message) events.push(parse(CloudEvent, message.json()));
    }
    return events;
  } finally {
    await connection.close();
  }
}

const soon = { timeout: 20_000 };
const createTask = (client: Awaited<ReturnType<typeof start>>['client'], name: string) =>
  client.create('task', { metadata: { name }, spec: { cpus: 1, memoryMiB: 64, ttlMs: 60_000 } });

it('sends the events of the fleet, once each, over a restart', async () => {
  const subjects = async () => new Set((await stored()).map(({ data }) => data.subject.name));
  const first = await start();
  await expect.poll(() => first.text('/readyz?verbose'), soon).toMatch(/event bus nats.*events are sent/);
  await createTask(first.client, 'one');
  await expect.poll(subjects, soon).toContain('one');
  await expect.poll(() => first.text('/metrics'), soon).toContain('berth_event_bus_lag_events{bus="nats"} 0');
  await first.server.close();

  const second = await start();
  await createTask(second.client, 'two');
  await expect.poll(subjects, soon).toContain('two');
  await second.server.close();

  const events = await stored();
  expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
  expect(events.map(({ data }) => data.reason)).not.toContain('Gap');
  const revisions = events.map(({ sequence }) => Number(sequence));
  expect(revisions).toEqual([...revisions].sort((a, b) => a - b));
}, 90_000);
