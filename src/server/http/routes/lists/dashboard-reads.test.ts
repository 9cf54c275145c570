// What the dashboard reads of a large fleet: a part of a list by position, the fleet as columns, one watch of several kinds.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, testRegistration } from '../../../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let viewer: string;
beforeAll(async () => {
  server = await startTestServer();
  const { client } = server;
  await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  for (const [name, project] of [
    ['a', 'ours'],
    ['b', 'theirs'],
    ['c', 'ours'],
    ['d', 'ours'],
  ] as const)
    await client.create('instance', { metadata: { name, project }, spec: { image: 'tiny' } });
  const spec = { role: 'viewer', project: 'ours', description: '' };
  ({ token: viewer } = await client.createToken({ metadata: { name: 'watcher', labels: {} }, spec }));
});
afterAll(() => server.close());

/** What the tests look at. */
interface Seen {
  readonly items?: readonly {
    readonly metadata: { readonly name: string };
    readonly project?: string;
    readonly instances?: number;
  }[];
  readonly total?: number;
  readonly error?: { readonly field?: string };
}

interface Line {
  readonly type: string;
  readonly resource?: { readonly kind: string; readonly metadata: { readonly name: string } };
}

async function get(path: string, token = 'operator'): Promise<{ status: number; json: Seen }> {
  const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, json: (await response.json()) as Seen };
}

const named = ({ json }: { json: Seen }): unknown => [
  (json.items ?? []).map(({ metadata }) => metadata.name).join(''),
  json.total,
];

describe('a list by position', () => {
  it.each([
    ['offset=0&order=newest', 'dcba', 4],
    ['offset=1&order=newest&limit=2', 'cb', 4],
    ['offset=0&limit=2', 'ac', 4], // by project and name
    ['offset=9&order=newest', '', 4],
    ['offset=0&order=newest&words=project=ours', 'dca', 3],
    ['offset=1&order=newest&project=ours', 'ca', 3],
    ['offset=0&words=state!=Pending', '', 0],
  ])('%s', async (query, names, total) => {
    expect(named(await get(`/v1/instances?${query}`))).toEqual([names, total]);
  });

  it('counts only what the reader may see', async () => {
    expect(named(await get('/v1/instances?offset=0&order=newest', viewer))).toEqual(['dca', 3]);
    expect((await get('/v1/instances?offset=0&project=theirs', viewer)).status).toBe(403);
  });

  it.each(['order=newest', 'offset=1&continue=aW5zdGFuY2VzL2E', 'offset=-1', 'order=oldest'])(
    'refuses %s',
    async (query) => {
      const { status, json } = await get(`/v1/instances?${query}`);
      expect([status, query]).toEqual([400, expect.stringContaining(json.error?.field ?? '-')]);
    },
  );
});

it('shows the fleet as columns, to those who may read hosts', async () => {
  await server.agentClient('h1').register(testRegistration({ labels: { zone: 'a' } }));
  const { json } = await get('/v1/fleet-map?labels=zone,rack');
  expect(json).toMatchObject({
    names: ['h1'],
    pools: ['default'],
    labels: { zone: ['a'], rack: [null] },
    classes: { VCPU: { capacity: [expect.any(Number)], used: [expect.any(Number)] } },
  });
  expect((await get('/v1/fleet-map', viewer)).status).toBe(403);
  expect((await get('/v1/fleet-map?labels=a,b,c,d,e,f,g,h,i')).json.error?.field).toBe('labels');
});

it('shows the sums of the projects that the reader may see', async () => {
  const sums = async (token?: string): Promise<unknown> => {
    const { json } = await get('/v1/project-totals', token);
    return (json.items ?? []).map(({ project, instances }) => [project, instances]);
  };
  expect(await sums()).toEqual([
    ['ours', 3],
    ['theirs', 1],
  ]);
  expect(await sums(viewer)).toEqual([['ours', 3]]);
  expect((await get('/v1/project-totals?project=theirs', viewer)).status).toBe(403);
});

describe('one watch of several kinds', () => {
  async function read(
    query: string,
    { token = 'operator', until }: { token?: string; until: string },
  ): Promise<Line[]> {
    const over = new AbortController();
    const response = await fetch(`${server.url}/v1/watch?${query}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: over.signal,
    });
    expect(response.status).toBe(200);
    let text = '';
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString();
      if (text.includes(until)) break;
    }
    over.abort();
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
  }

  it('tells the changes of all of them in order, and of which kind a deletion is', async () => {
    const { client } = server;
    const { revision } = await client.list('pool');
    await client.create('pool', { metadata: { name: 'p1' }, spec: {} });
    await client.create('size', { metadata: { name: 's1' }, spec: { cpus: 1, memoryMiB: 64 } });
    await client.create('instance', { metadata: { name: 'unseen' }, spec: { image: 'tiny' } });
    await client.delete('pool', 'p1');
    const lines = await read(`kinds=pool,size&revision=${revision}`, { until: '"delete"' });
    const told = lines
      .filter(({ type }) => type !== 'bookmark')
      .map(({ type, resource }) => [type, resource?.kind, resource?.metadata.name]);
    expect(told).toEqual([
      ['put', 'pool', 'p1'],
      ['put', 'size', 's1'],
      ['delete', 'pool', 'p1'],
    ]);
  });

  it('says what the reader may not watch, and goes on with the rest', async () => {
    const { revision } = await server.client.list('pool');
    await server.client.create('instance', {
      metadata: { name: 'hidden', project: 'theirs' },
      spec: { image: 'tiny' },
    });
    await server.client.create('instance', { metadata: { name: 'shown', project: 'ours' }, spec: { image: 'tiny' } });
    const lines = await read(`kinds=host,instance&revision=${revision}`, { token: viewer, until: 'shown' });
    expect(lines[0]).toMatchObject({ type: 'refused', kind: 'host', message: expect.stringContaining('hosts') });
    expect(JSON.stringify(lines)).not.toContain('hidden');
  });

  it('is refused for what nothing of may be watched, and for what does not exist', async () => {
    expect((await get('/v1/watch?kinds=host', viewer)).status).toBe(403);
    expect((await get('/v1/watch?kinds=hosts')).json.error).toMatchObject({ code: 'InvalidRequest', field: 'kinds' });
    expect((await get('/v1/watch?kinds=host&revision=1&epoch=other')).json.error).toMatchObject({ code: 'Compacted' });
    expect((await get('/v1/watch?kinds=host&revision=999999')).json.error).toMatchObject({ field: 'revision' });
  });
});
