// A trace that a client begins goes through the control plane: into what it creates, the audit log, errors and events.

import { expect, it, onTestFinished } from 'vitest';
import { cloudEventOf } from '../../api/news/cloud-event.ts';
import type { Event } from '../../api/resources/event.ts';
import { systemFetch } from '../../base/system.ts';
import { testInstance } from '../../core/testing.ts';
import { linesIn, testFolder, testSettings } from '../audit/testing.ts';
import { startTestServer } from '../testing.ts';
import { bootSpans } from './boot-spans.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;

interface Answer {
  readonly metadata: { readonly traceParent?: string };
  readonly error: { readonly traceId: string };
}

async function start() {
  const directory = testFolder();
  const server = await startTestServer({ audit: testSettings(directory) });
  onTestFinished(() => server.close());
  const send = async (method: string, path: string, body: unknown, headers: Record<string, string> = {}) => {
    const response = await systemFetch(`${server.url}${path}`, {
      method,
      headers: { authorization: 'Bearer operator', 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, answer: JSON.parse(await response.text()) as Answer }; // both forms of it
  };
  return { ...server, send, lines: () => linesIn(directory) };
}

const image = { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny.img' } };
const instance = (name: string) => ({ metadata: { name }, spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } });

it('goes into what is created, its audit line and its events', async () => {
  const { client, send, lines } = await start();
  await client.create('image', image);
  const { answer } = await send('POST', '/v1/instances', instance('web'), { traceparent });
  expect(answer.metadata.traceParent).toBe(traceparent);
  expect(lines().at(-1)).toMatchObject({ object: 'web', outcome: 'done', trace: traceId });
  const { items: found } = await client.auditLog({ trace: traceId });
  expect(found).toMatchObject([{ object: 'web', trace: traceId }]);
  const { items } = await client.list('event');
  const events = items.filter((event: Event) => event.spec.subject.name === 'web');
  expect(events.length).toBeGreaterThan(0);
  for (const event of events) expect(cloudEventOf(event, 'fleet').traceparent).toBe(traceparent);
  const read = await client.get('instance', 'web');
  expect((await send('PUT', '/v1/instances/web', read)).answer.metadata.traceParent).toBe(traceparent);
  const changed = { ...read, metadata: { ...read.metadata, traceParent: 'other' } };
  expect(await send('PUT', '/v1/instances/web', changed)).toMatchObject({ status: 400 });
});

it('goes from a job to the instances of its attempts', async () => {
  const { client, send } = await start();
  await client.create('image', image);
  await send(
    'POST',
    '/v1/jobs',
    { metadata: { name: 'build' }, spec: { image: 'tiny', script: 'true' } },
    { traceparent },
  );
  await expect
    .poll(async () => (await client.list('instance')).items.map(({ metadata }) => metadata.traceParent))
    .toEqual([traceparent]);
});

it('is in errors, and one that is no traceparent counts as none', async () => {
  const { send, lines } = await start();
  const refused = await send('POST', '/v1/instances', instance('UPPER'), { traceparent });
  expect(refused.answer.error.traceId).toBe(traceId);
  const own = await send('POST', '/v1/images', { ...image, spec: {} }, { traceparent: `${traceparent}-x` });
  expect(own.answer.error.traceId).toMatch(/^[0-9a-f]{32}$/);
  expect(lines().at(-1)).toMatchObject({ outcome: 'refused', trace: own.answer.error.traceId });
  const stranger = await send('POST', '/v1/images', image, { traceparent, authorization: 'Bearer wrong' });
  expect(stranger).toMatchObject({ status: 401, answer: { error: { traceId } } });
  await expect.poll(() => lines().at(-1)).toMatchObject({ reason: 'Unauthenticated', trace: traceId });
});

it('has the boot as a part of it', () => {
  const guest = {
    ...{ state: 'running' as const, ready: true, ports: [] },
    phases: [{ name: 'boot', startedAtMs: 2, durationMs: 3 }],
  };
  const { metadata, status, ...rest } = testInstance('web');
  const booted = { ...rest, metadata: { ...metadata, traceParent: traceparent }, status: { ...status, guest } };
  const [root] = bootSpans(booted);
  expect(root).toMatchObject({ traceId, parentSpanId: '00f067aa0ba902b7', name: 'instance boot' });
});
