// The mock cluster of librdkafka gets every event. It speaks part of the protocol, lives in a process of kcat, and cannot be restarted with
// what it has: a broker that comes back is not tried here.

import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CloudEvent } from '../../../../api/news/cloud-event.ts';
import { systemClock } from '../../../../base/system.ts';
import { freePort } from '../../../../base/test-ports.ts';
import { createMemoryStore } from '../../../../store/memory/memory-store.ts';
import { busSettingsOf } from '../bus-settings.ts';
import { putEvents, startBus, testDecider, traceParent } from '../testing.ts';
import { openKafka } from './kafka-bus.ts';

let cluster: ChildProcessByStdio<Writable, null, Readable>;
let address: string;
beforeAll(async () => {
  const words = ['-P', '-b', 'x', '-t', 't', '-X', 'test.mock.num.brokers=1', '-d', 'mock'];
  cluster = spawn('setpriv', ['--pdeathsig=KILL', 'kcat', ...words], { stdio: ['pipe', 'ignore', 'pipe'] });
  const [said]: unknown[] = await once(createInterface({ input: cluster.stderr }), 'line');
  cluster.stderr.resume();
  address = /bootstrap\.servers=(127\.0\.0\.1:\d+)/.exec(String(said))?.[1] ?? '';
});
afterAll(async () => {
  const exited = once(cluster, 'exit');
  cluster.kill('SIGKILL');
  await exited;
});

function open(at: string) {
  const [settings] = busSettingsOf([{ kind: 'kafka', url: `kafka://${at}` }]);
  if (!settings) throw new Error('no event bus is configured');
  return openKafka(settings);
}

interface Stored {
  readonly key: string;
  readonly headers: string;
  readonly event: CloudEvent;
}

/** What the topic has, in the order of its partitions. */
function stored(): Stored[] {
  const format = '%k\t%h\t%s\n';
  const words = ['-C', '-q', '-e', '-b', address, '-t', 'berth-events', '-f', format];
  const lines = execFileSync('kcat', words).toString().trim().split('\n');
  return lines.map((line) => {
    const [key = '', headers = '', value = ''] = line.split('\t');
    return { key, headers, event: JSON.parse(value) as CloudEvent };
  });
}

describe('Kafka', () => {
  it('gets events in structured mode, those of one subject in order', async () => {
    const decider = testDecider(createMemoryStore(), systemClock);
    const bus = startBus(decider, () => open(address));
    for (const reason of ['A', 'B', 'C']) {
      await putEvents(decider, [reason], 'a');
      await putEvents(decider, [reason], 'b');
    }
    await expect.poll(() => bus.report()[0]?.message, { timeout: 20_000 }).toBe('events are sent; 0 events wait');
    const messages = stored();
    for (const name of ['a', 'b']) {
      const own = messages.filter(({ event }) => event.data.subject.name === name);
      expect(own.map(({ event }) => event.data.reason)).toEqual(['A', 'B', 'C']);
      for (const { key, headers, event } of own) {
        expect(key).toBe(event.partitionkey);
        expect(headers).toContain(`ce_id=${event.id}`);
        expect(headers).toContain(`traceparent=${traceParent}`);
        expect(event.traceparent).toBe(traceParent);
        expect(headers).toContain('content-type=application/cloudevents+json; charset=utf-8');
      }
    }
    await bus.stop();
  }, 60_000);

  it('is told to be away when nothing listens', async () => {
    const away = `127.0.0.1:${await freePort()}`;
    const bus = startBus(testDecider(createMemoryStore(), systemClock), () => open(away));
    await expect.poll(() => bus.report()[0]?.message, { timeout: 20_000 }).toContain(away.slice(away.indexOf(':')));
    expect(bus.report()[0]?.ok).toBe(false);
    await bus.stop();
  }, 60_000);
});
