import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import type { WebFetch } from '../../base/fetch-json.ts';
import { silentLogger } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import { keys } from '../../core/state/keys.ts';
import { startTestServer } from '../testing.ts';
import { type InventorySettings, noInventorySettings } from './inventory-settings.ts';
import { Inventories } from './inventories.ts';

const mockNodes = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ name: `metal-${i}`, cpu: 8, memory: 4096, usage_cpu: i % 3 }));

type Answer = Awaited<ReturnType<WebFetch>>;

function answer(status: number, body = '', etag?: string): Answer {
  const bytes = new TextEncoder().encode(body);
  return {
    status,
    headers: { get: (name) => (name === 'etag' ? (etag ?? null) : null) },
    body: (async function* () {
      yield bytes;
    })(),
  };
}

/** A control plane, and a source whose answer can be changed. Polls happen when `poll` says so. */
async function startWorld(settings: Partial<InventorySettings> = {}) {
  const server = await startTestServer();
  const clock = createManualClock();
  const asked: (string | undefined)[] = [];
  const authorizations: (string | undefined)[] = [];
  const world = { answer: (): Answer | Promise<Answer> => answer(200, '[]') };
  let leads = true;
  const fetch: WebFetch = (_url, { headers, signal }) => {
    asked.push(headers['if-none-match']);
    authorizations.push(headers['authorization']);
    const aborted = new Promise<never>((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true }),
    );
    aborted.catch(() => {});
    return Promise.race([world.answer(), aborted]);
  };
  const decider = { ...server.plane.decider, clock, prng: seededPrng(1) };
  const inventories = new Inventories({
    ...{ decider, fetch, leads: () => leads, log: silentLogger },
    settings: { ...noInventorySettings, ...settings },
  });
  inventories.lead();
  /** What is under way goes on, files included: they are read by other threads, in the order in which they were asked for. */
  const settle = async () => {
    await stat(tmpdir());
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const { cache } = decider;
  return {
    ...{ server, world, asked, authorizations, clock, inventories },
    /** Until `until` holds; each turn lets a second pass. */
    async pass(until: () => boolean) {
      for (let i = 0; i < 2000; i++) {
        if (until()) return;
        await clock.advanceSettled(1_000, settle);
      }
      throw new Error(
        `it does not come to that: ${JSON.stringify(cache.get('inventory', keys.inventory('metal'))?.value)}`,
      );
    },
    lead: (is: boolean) => {
      leads = is;
      if (is) inventories.lead();
      else inventories.stepDown();
    },
    status: () => cache.committed('inventory', keys.inventory('metal'))?.value.status,
    hosts: () => [...cache.listCommitted('host')].length,
    revision: () => cache.revision,
    async create() {
      const spec = { source: { kind: 'http', url: 'http://source.test/nodes' } } as const;
      await server.client.create('inventory', { metadata: { name: 'metal' }, spec });
    },
    async close() {
      await inventories.stop();
      await server.close();
    },
  };
}

let world: Awaited<ReturnType<typeof startWorld>> | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

const fifty = JSON.stringify(mockNodes(50));

describe('a polled inventory', () => {
  it('has its hosts, asks with the ETag, and writes nothing when nothing changed', async () => {
    world = await startWorld();
    const { asked } = world;
    world.world.answer = () => (asked.at(-1) === '"1"' ? answer(304) : answer(200, fifty, '"1"'));
    await world.create();
    await world.pass(() => world?.status()?.state === 'Fresh');
    expect(world.hosts()).toBe(50);
    expect(world.status()).toMatchObject({ hosts: 50, message: '50 hosts', skipped: [] });
    expect(world.inventories.inventories()).toEqual([
      { inventory: 'metal', hosts: 50, fresh: true, ageMs: expect.any(Number) },
    ]);
    const before = world.revision();
    await world.pass(() => asked.length >= 5);
    expect(asked.slice(1, 5)).toEqual(['"1"', '"1"', '"1"', '"1"']);
    expect(world.revision()).toBe(before);
  });

  const bad: readonly (readonly [string, () => Answer | Promise<Answer>, RegExp])[] = [
    ['answers 500', () => answer(500), /it answered 500/],
    ['wants credentials', () => answer(401), /it answered 401: it wants credentials/],
    ['redirects', () => answer(302), /it answered 302/],
    ['answers 304 to an unconditional request', () => answer(304), /it answered 304/],
    ['sends no JSON', () => answer(200, 'hello'), /the answer is not JSON/],
    ['sends NaN', () => answer(200, '[{"name":"a","cpu":NaN}]'), /the answer is not JSON/],
    ['sends an object', () => answer(200, '{}'), /the list is refused: it is not a list/],
    ['sends null', () => answer(200, 'null'), /the list is refused: it is not a list/],
    ['sends more than 10 MB', () => answer(200, 'x'.repeat(10_500_000)), /over 10485760 bytes/],
    ['sends one name of 9 MB', () => answer(200, `[{"name":"${'x'.repeat(9_000_000)}"}]`), /name has another form/],
    ['sends duplicates', () => answer(200, '[{"name":"a"},{"name":"A"}]'), /two nodes are named/],
    [
      'cannot be reached',
      () => Promise.reject(new Error('fetch failed', { cause: new Error('ECONNREFUSED') })),
      /ECONN/,
    ],
    ['never answers', () => new Promise(() => {}), /no answer within 10 s/],
  ];
  it.each(bad)('keeps the last good list when its source %s', async (_name, answers, message) => {
    world = await startWorld();
    world.world.answer = () => answer(200, fifty);
    await world.create();
    await world.pass(() => world?.status()?.state === 'Fresh');
    world.world.answer = answers;
    await world.pass(() => world?.status()?.state === 'Stale');
    expect(world.status()?.message).toMatch(message);
    expect(world.status()?.lastGoodAtMs).toBeDefined();
    expect(world.inventories.inventories()).toMatchObject([{ fresh: false, ageMs: expect.any(Number) }]);
    expect(world.hosts()).toBe(50);
    world.world.answer = () => answer(200, fifty);
    await world.pass(() => world?.status()?.state === 'Fresh');
  });

  it.each([
    ['empty', 0],
    ['half as long', 25],
  ])('holds a list that is %s until it is confirmed', async (_name, left) => {
    world = await startWorld();
    world.world.answer = () => answer(200, fifty);
    await world.create();
    await world.pass(() => world?.status()?.state === 'Fresh');
    world.world.answer = () => answer(200, JSON.stringify(mockNodes(50).slice(0, left)));
    await world.pass(() => world?.status()?.state === 'Held');
    expect(world.hosts()).toBe(50);
    await world.server.client.confirmInventory('metal', world.status()?.waiting?.hash ?? '');
    await world.pass(() => world?.status()?.state === 'Fresh');
    expect(world.hosts()).toBe(left);
    expect(world.status()).not.toHaveProperty('confirmed');
  });

  it('is polled by the leader only, and its hosts go with it', async () => {
    world = await startWorld();
    world.world.answer = () => answer(200, fifty);
    world.lead(false);
    await world.create();
    await world.clock.advanceSettled(60_000, () => new Promise((resolve) => setImmediate(resolve)));
    expect(world.asked).toEqual([]);
    world.lead(true);
    await world.pass(() => world?.status()?.state === 'Fresh');
    await world.server.client.delete('inventory', 'metal');
    await world.pass(() => world?.hosts() === 0);
  });
});

describe('credentials', () => {
  it('are sent to their source alone, and shown nowhere', async () => {
    const authorizationFor = (url: string) =>
      Promise.resolve(url.startsWith('http://source.test/') ? 'Bearer open-sesame' : undefined);
    world = await startWorld({ authorizationFor });
    const { authorizations, server } = world;
    world.world.answer = () => answer(403);
    await world.create();
    await world.pass(() => world?.status()?.state === 'Stale');
    expect(world.status()?.message).toMatch(/it answered 403: it refuses the credentials of the server/);
    expect(new Set(authorizations)).toEqual(new Set(['Bearer open-sesame']));
    const inventory = await server.client.get('inventory', 'metal');
    const source = { kind: 'http', url: 'http://elsewhere.test/nodes' } as const;
    await server.client.replace('inventory', 'metal', { spec: { ...inventory.spec, source } });
    const before = authorizations.length;
    await world.pass(() => authorizations.length > before + 1);
    expect(authorizations.slice(before + 1)).not.toContain('Bearer open-sesame');
    const shown = JSON.stringify([
      await server.client.get('inventory', 'metal'),
      (await server.client.list('event')).items,
      world.inventories.report(),
    ]);
    expect(shown).not.toContain('open-sesame');
  });

  it('that cannot be read make the source fail', async () => {
    world = await startWorld({ authorizationFor: () => Promise.reject(new Error('cannot read /etc/token')) });
    await world.create();
    await world.pass(() => world?.status()?.state === 'Stale');
    expect(world.status()?.message).toBe('the source fails: cannot read /etc/token');
    expect(world.asked).toEqual([]);
  });
});

describe('an inventory in a file', () => {
  it('is created, follows the file, and stays as it was while the file is bad', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-inventory-'));
    const file = join(folder, 'nodes.yaml');
    try {
      await writeFile(file, '- {name: m1, cpu: 4, memory: 1024}\n- {name: m2, cpu: 4, memory: 1024}\n');
      world = await startWorld({ files: new Map([['metal', file]]) });
      await world.pass(() => world?.status()?.state === 'Fresh');
      expect(world.status()).toMatchObject({ state: 'Fresh', hosts: 2 });
      const bad = [
        ['- {name: m1, cpu: .nan, memory: 1024}\n', /not a plain string, number/],
        ['- {name: m1, cpu: -4, memory: 1024}\n', /cpu is -4, below 1/],
        ['- &a {name: m1}\n- *a\n', /anchors/],
        ['nodes: []\n', /it is not a list/],
      ] as const;
      for (const [text, why] of bad) {
        await writeFile(file, text);
        await world.pass(() => why.test(world?.status()?.message ?? ''));
        expect(world.status()).toMatchObject({ state: 'Stale', hosts: 2 });
      }
      await rm(file);
      await world.pass(() => /ENOENT/.test(world?.status()?.message ?? ''));
      await writeFile(file, '- {name: m1, cpu: 8, memory: 1024}\n- {name: m2, cpu: 4, memory: 1024}\n');
      await world.pass(() => world?.status()?.state === 'Fresh');
      await expect(world.server.client.pushNodes('metal', [])).rejects.toThrow(/reads a file, and takes no pushes/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('a pushed inventory', () => {
  it('takes lists, and says what became of them', async () => {
    world = await startWorld();
    const { client } = world.server;
    await client.create('inventory', { metadata: { name: 'lab' }, spec: { source: { kind: 'push' } } });
    expect(await client.pushNodes('lab', mockNodes(5))).toMatchObject({ state: 'Fresh', hosts: 5 });
    const held = await client.pushNodes('lab', mockNodes(1));
    expect(held).toMatchObject({ state: 'Held', hosts: 5, waiting: { gone: 4 } });
    await client.confirmInventory('lab', held.waiting?.hash ?? '');
    expect(await client.pushNodes('lab', mockNodes(1))).toMatchObject({ state: 'Fresh', hosts: 1 });
    await expect(client.pushNodes('lab', [1])).rejects.toThrow(/the list is refused: 1 of its 1 nodes are bad/);
    await expect(client.pushNodes('other', [])).rejects.toThrow(/there is no inventory "other"/);
    await expect(client.confirmInventory('lab', 'x')).rejects.toThrow(/waits for no confirmation/);
    await client.create('inventory', {
      metadata: { name: 'polled' },
      spec: { source: { kind: 'http', url: 'http://source.test/nodes' } },
    });
    await expect(client.pushNodes('polled', [])).rejects.toThrow(/polls its source/);
    expect((await client.get('inventory', 'lab')).status).toMatchObject({ state: 'Fresh', hosts: 1 });
  });
});
