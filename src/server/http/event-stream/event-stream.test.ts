// Events as a browser's EventSource reads them, over real HTTP.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import { CloudEvent } from '../../../api/news/cloud-event.ts';
import { startTestServer } from '../../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
});
afterAll(() => server.close());

/** The blocks of a stream as they come, until `enough` of what came. */
async function read(
  { token = 'operator', query = '', lastEventId }: { token?: string; query?: string; lastEventId?: string },
  enough: (text: string) => boolean,
): Promise<{ text: string; events: CloudEvent[] }> {
  const over = new AbortController();
  const response = await fetch(`${server.url}/v1/events?watch=true${query}`, {
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'text/event-stream',
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    signal: over.signal,
  });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
  let text = '';
  for await (const piece of response.body ?? []) {
    text += Buffer.from(piece).toString();
    if (enough(text)) break;
  }
  over.abort();
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => parse(CloudEvent, JSON.parse(json)));
  return { text, events };
}

const run = (name: string, project = 'default') =>
  server.client.create('instance', { metadata: { name, project }, spec: { image: 'tiny' } });
const before = () => String(server.plane.decider.cache.revision);

it('tells each event once, with an id to continue from', async () => {
  const lastEventId = before();
  await run('a');
  await run('b');
  const first = await read({ lastEventId }, (text) => text.includes('instances/b'));
  expect(first.events.map(({ subject, type }) => [subject, type])).toEqual(
    expect.arrayContaining([
      ['projects/default/instances/a', 'berth.v1.instance.Unschedulable'],
      ['projects/default/instances/b', 'berth.v1.instance.Unschedulable'],
    ]),
  );
  for (const { sequence, type } of first.events) expect(first.text).toContain(`id: ${sequence}\nevent: ${type}\n`);
  const aboutA = first.events.findLast(({ subject }) => subject.endsWith('/a'));
  const second = await read({ lastEventId: aboutA?.sequence ?? '' }, (text) => text.includes('instances/b'));
  expect(second.events.some(({ subject }) => subject.endsWith('/a'))).toBe(false);
});

it('tells only what the token may read', async () => {
  const { token } = await server.client.createToken({
    metadata: { name: 'watcher', labels: {} },
    spec: { role: 'viewer', project: 'ours', description: '' },
  });
  const lastEventId = before();
  await run('secret-name', 'theirs');
  await run('known', 'ours');
  const { text } = await read({ token, lastEventId, query: '&project=ours' }, (seen) => seen.includes('known'));
  expect(text).not.toContain('secret-name');
  const refused = await fetch(`${server.url}/v1/events?watch=true&project=theirs`, {
    headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
  });
  expect(refused.status).toBe(403);
});

it('keeps its usual form for those who ask for JSON', async () => {
  const response = await fetch(`${server.url}/v1/events?watch=true&revision=${before()}`, {
    headers: { authorization: 'Bearer operator', accept: 'application/json, text/plain' },
  });
  expect(response.headers.get('content-type')).toBe('application/x-ndjson');
  await response.body?.cancel();
});
