import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemFetch } from '../../base/system.ts';
import { type Handler, runBerth } from '../testing.ts';
import { MockSource, mockNodes } from './mock-source.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-inventory-'));
  await writeFile(join(directory, 'nodes.yaml'), '- {name: m1, cpu: 4, memory: 1024}\n');
  await writeFile(join(directory, 'object.yaml'), 'nodes: []\n');
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const handler: Handler = ({ path }) =>
  path.endsWith('/nodes')
    ? { json: { state: 'Fresh', message: '1 hosts', hosts: 1, skipped: [] } }
    : { json: { kind: 'inventory', metadata: { name: 'metal' }, spec: {}, status: {} } };

describe('berth inventory', () => {
  it.each<[string, string, unknown]>([
    [
      'create metal --from http://s/nodes --pool edge --interval 5 --loss-max 30',
      'POST /v1/inventories',
      {
        metadata: { name: 'metal' },
        spec: {
          ...{ description: '', source: { kind: 'http', url: 'http://s/nodes' }, pool: 'edge' },
          ...{ intervalMs: 5_000, lossShareMax: 0.3 },
        },
      },
    ],
    [
      'create lab',
      'POST /v1/inventories',
      { metadata: { name: 'lab' }, spec: { description: '', source: { kind: 'push' } } },
    ],
    ['confirm metal abc', 'POST /v1/inventories/metal/confirm', { hash: 'abc' }],
    ['push metal nodes.yaml', 'PUT /v1/inventories/metal/nodes', [{ name: 'm1', cpu: 4, memory: 1024 }]],
    ['rm metal', 'DELETE /v1/inventories/metal', undefined],
  ])('%s', async (words, request, body) => {
    const argv = words.split(' ').map((word) => (word.endsWith('.yaml') ? join(directory, word) : word));
    const { requests, exitCode } = await runBerth(['inventory', ...argv], { handler });
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual([request]);
    expect(requests[0]?.body).toEqual(body);
    expect(exitCode).toBe(0);
  });

  it.each([
    [['push', 'metal', 'object.yaml'], 'is not a list of nodes'],
    [['push', 'metal', 'absent.yaml'], 'absent.yaml'],
    [['create', 'metal', '--interval', '0'], '--interval'],
    [['create', 'metal', '--loss-max', '101'], '--loss-max'],
    [['mock', '--hosts', '-1'], '--hosts'],
    [['mock', '--vary', '0'], '--vary'],
  ])('%j is refused', async (words, told) => {
    const argv = words.map((word) => (word.endsWith('.yaml') ? join(directory, word) : word));
    const { stderr, exitCode, requests } = await runBerth(['inventory', ...argv], { handler });
    expect(stderr).toContain(told);
    expect(exitCode).not.toBe(0);
    expect(requests).toEqual([]);
  });
});

describe('the mock source', () => {
  it('has loads that vary, of one node of four at a time', async () => {
    let turn = 0;
    const source = await MockSource.open({ hosts: 40, port: 0, turn: () => turn });
    const loads = async () =>
      ((await (await systemFetch(source.url)).json()) as ReturnType<typeof mockNodes>).map((node) => {
        expect(node.usage_cpu).toBeLessThan(node.cpu);
        return node.usage_mem / node.memory;
      });
    try {
      let before = await loads();
      expect(await loads()).toEqual(before);
      for (turn = 1; turn <= 40; turn++) {
        const after = await loads();
        expect(after.filter((load, i) => load !== before[i]).length).toBeLessThanOrEqual(10);
        expect(after).not.toEqual(before);
        before = after;
      }
      expect(new Set(before).size).toBeGreaterThan(1);
    } finally {
      await source.close();
    }
  });

  it('answers with an ETag, and 304 to it', async () => {
    const source = await MockSource.open({ hosts: 3, port: 0 });
    try {
      const first = await systemFetch(source.url);
      expect(await first.json()).toEqual(mockNodes(3));
      const etag = first.headers.get('etag') ?? '';
      expect((await systemFetch(source.url, { headers: { 'if-none-match': etag } })).status).toBe(304);
      expect((await systemFetch(`${source.url}/other`)).status).toBe(404);
    } finally {
      await source.close();
    }
  });
});
