// Traces of boots, from a server to a collector that the test makes.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startTestServer, testRegistration } from '../testing.ts';
import { traceIdOf } from './boot-spans.ts';

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

let collector: Server;
let server: Awaited<ReturnType<typeof startTestServer>>;
let bodies: { readonly path: string | undefined; readonly json: unknown }[];
let answers: number[];

beforeEach(async () => {
  bodies = [];
  answers = [];
  collector = createServer((request, response) => {
    let text = '';
    request.on('data', (piece) => (text += String(piece)));
    request.on('end', () => {
      bodies.push({ path: request.url, json: JSON.parse(text) });
      response.writeHead(answers.shift() ?? 200).end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const { port } = collector.address() as AddressInfo; // it listens on a port
  server = await startTestServer({ tracing: `http://127.0.0.1:${port}` });
});
afterEach(async () => {
  await server.close();
  collector.closeAllConnections();
  collector.close();
});

/** Spans by the service that made them. */
function spansOf(json: unknown): Map<string, SentSpan[]> {
  const { resourceSpans } = json as {
    resourceSpans: {
      resource: { attributes: { value: { stringValue: string } }[] };
      scopeSpans: { spans: SentSpan[] }[];
    }[];
  }; // what OTLP has
  return new Map(
    resourceSpans.map(({ resource, scopeSpans }) => [
      resource.attributes[0]?.value.stringValue ?? '',
      scopeSpans.flatMap(({ spans }) => spans),
    ]),
  );
}

/** Reports the guest of a new instance as ready, not ready and ready again. */
async function boot(name: string): Promise<{ id: string; createdAtMs: number; startedAtMs: number }> {
  const agent = server.agentClient('h1');
  const { epoch } = await agent.register(testRegistration());
  const { metadata } = await server.client.create('instance', {
    metadata: { name },
    spec: { image: 'tiny', cpus: 1, memoryMiB: 256 },
  });
  const startedAtMs = metadata.createdAtMs + 100;
  const phases = [
    { name: 'clone', startedAtMs, durationMs: 40 },
    { name: 'boot', startedAtMs: startedAtMs + 40, durationMs: 1_000.5 },
  ];
  for (const [index, ready] of [false, true, false, true].entries()) {
    const guest = { state: 'running' as const, ready, ports: [], phases };
    const report = { instanceId: metadata.id, incarnation: 1, sequence: index + 1, observedGeneration: 1, guest };
    expect(await agent.report({ epoch, reports: [report] })).toEqual({ results: ['accepted'] });
  }
  return { ...metadata, startedAtMs };
}

it('tells one trace from the request to the guest that is ready', async () => {
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  const { id, createdAtMs, startedAtMs } = await boot('a');
  await expect.poll(() => bodies.length).toBe(1);
  expect(bodies[0]?.path).toBe('/v1/traces');
  const spans = spansOf(bodies[0]?.json);
  const [root, schedule] = spans.get('berth-server') ?? [];
  const agents = spans.get('berth-agent') ?? [];
  expect(root).toMatchObject({
    traceId: traceIdOf(id),
    name: 'instance boot',
    startTimeUnixNano: `${createdAtMs}000000`,
    endTimeUnixNano: `${startedAtMs + 1_040}500000`,
  });
  expect(root).not.toHaveProperty('parentSpanId');
  expect(agents.map(({ name }) => name)).toEqual(['clone', 'boot']);
  for (const span of [schedule, ...agents])
    expect(span).toMatchObject({ traceId: root?.traceId, parentSpanId: root?.spanId });
  expect(schedule?.name).toBe('schedule');
});

it('drops what a collector refuses, sends the next boot, and sends no boot twice', async () => {
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  answers.push(400);
  await boot('a');
  await expect.poll(() => bodies.length).toBe(1);
  const { id } = await boot('b');
  await expect.poll(() => bodies.length).toBe(2);
  expect(spansOf(bodies[1]?.json).get('berth-server')?.[0]?.traceId).toBe(traceIdOf(id));
});
