// A real NATS server gets every event once, whichever of the two is restarted.

import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CloudEvent } from '../../../../api/news/cloud-event.ts';
import { systemClock } from '../../../../base/system.ts';
import { createMemoryStore } from '../../../../store/memory/memory-store.ts';
import { busSettingsOf } from '../bus-settings.ts';
import { positionIn, putEvents, startBus, testDecider } from '../testing.ts';
import { openNats } from './nats-bus.ts';
import { startNats, type TestNats } from './test-nats.ts';

const password = 'open-sesame';
let nats: TestNats;
let folder: string;
let passwordFile: string;
beforeAll(async () => {
  nats = await startNats(['--user', 'berth', '--pass', password]);
  folder = await mkdtemp(join(tmpdir(), 'berth-bus-'));
  passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, `${password}\n`);
});
afterAll(async () => {
  await nats?.dispose();
  await rm(folder, { recursive: true, force: true });
});

function settings() {
  const [only] = busSettingsOf([{ kind: 'nats', url: nats.url, user: 'berth', passwordFile }]);
  if (!only) throw new Error('no event bus is configured');
  return only;
}

/** What the stream has: subject, id of the message, content. */
async function stored() {
  const connection = await connect({ servers: nats.url.slice(7), user: 'berth', pass: password });
  try {
    const { streams } = await jetstreamManager(connection);
    const { state } = await streams.info('BERTH_EVENTS').catch(() => ({ state: { last_seq: 0 } }));
    const messages = [];
    for (let seq = 1; seq <= state.last_seq; seq++) {
      const message = await streams.getMessage('BERTH_EVENTS', { seq });
      if (message)
        messages.push({
          subject: message.subject,
          id: message.header.get('Nats-Msg-Id'),
          type: message.header.get('Content-Type'),
          event: message.json<CloudEvent>(),
        });
    }
    return messages;
  } finally {
    await connection.close();
  }
}
const reasons = async () => (await stored()).map(({ event }) => event.data.reason);

describe('NATS JetStream', () => {
  it('gets events in structured mode, and goes on after each of both was restarted', async () => {
    const decider = testDecider(createMemoryStore(), systemClock);
    let bus = startBus(decider, () => openNats(settings()));
    await putEvents(decider, ['A', 'B']);
    await expect.poll(reasons, { timeout: 20_000 }).toEqual(['A', 'B']);
    const [first] = await stored();
    expect(first).toMatchObject({
      subject: 'berth.events.default.task.A',
      id: first?.event.id,
      type: 'application/cloudevents+json; charset=utf-8',
      event: { specversion: '1.0', type: 'berth.v1.task.A', data: { subject: { name: 'a' } } },
    });

    await nats.kill();
    await putEvents(decider, ['C', 'D']);
    await expect.poll(() => bus.report()[0]?.ok, { timeout: 20_000 }).toBe(false);
    expect(bus.lags()[0]?.events).toBe(2);
    await nats.start();
    await expect.poll(reasons, { timeout: 20_000 }).toEqual(['A', 'B', 'C', 'D']);
    expect(bus.report()).toEqual([{ name: 'event bus test', ok: true, message: 'events are sent; 0 events wait' }]);

    await bus.stop();
    await putEvents(decider, ['E']);
    bus = startBus(decider, () => openNats(settings()));
    await expect.poll(reasons, { timeout: 20_000 }).toEqual(['A', 'B', 'C', 'D', 'E']);
    await bus.stop();
    expect(positionIn(decider)).toBeGreaterThan(0);
  }, 90_000);

  it('tells its last message, and only to the fleet that it is of', async () => {
    const bus = await openNats(settings());
    const last = (await stored()).at(-1)?.event;
    expect(await bus.last(last?.source ?? '')).toBe(Number(last?.sequence));
    expect(await bus.last('urn:berth:another')).toBeUndefined();
    await bus.close();
  });

  it('refuses a wrong password, and does not repeat it', async () => {
    writeFileSync(passwordFile, 'wrong-sesame\n');
    const refused = await openNats(settings()).catch((error: unknown) => error);
    writeFileSync(passwordFile, `${password}\n`);
    expect(String(refused)).toMatch(/authorization/i);
    expect(String(refused)).not.toContain('sesame');
  });
});
