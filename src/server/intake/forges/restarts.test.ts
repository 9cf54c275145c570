// Webhooks and commit statuses over the restart of a control plane, and with two of them on one store.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemFetch } from '../../../base/system.ts';
import { keys } from '../../../core/state/keys.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import { startTestServer } from '../../testing.ts';
import type { ConfiguredHook } from './forge-config.ts';
import { headersOf, pushBody, send, TestForge, testSha } from './testing.ts';

type TestServer = Awaited<ReturnType<typeof startTestServer>>;

let forge: TestForge;
let store: ReturnType<typeof createMemoryStore>;
const servers: TestServer[] = [];
beforeEach(async () => {
  forge = await new TestForge('forgejo').start();
  store = createMemoryStore();
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.drop();
  await store.close();
  await forge.stop();
});

async function start(changes: Partial<ConfiguredHook> = {}): Promise<TestServer> {
  const server = await startTestServer({ store, forges: { hooks: [forge.hook(changes)], fetch: systemFetch } });
  servers.push(server);
  return server;
}

/** The image that all jobs run on. */
async function addImage({ client }: TestServer): Promise<void> {
  await client.create('image', {
    metadata: { name: 'default' },
    spec: { source: 'https://images.test/x.qcow2', checksum: `sha256:${'0'.repeat(64)}` },
  });
}

async function deliver({ url }: TestServer, id: string, changes: Readonly<Record<string, unknown>> = {}) {
  const body = pushBody(forge, changes);
  const headers = headersOf({ forge: 'forgejo', event: 'push', id, body });
  const { status, json } = await send(`${url}/v1/hooks/main`, { body, headers });
  return { status, ...(json as { jobs: readonly [string] }) };
}

function jobOf({ plane }: TestServer, name: string) {
  return plane.decider.cache.committed('job', keys.job('default', name))?.value;
}

describe('after a restart', () => {
  it('a delivery whose answer was lost has the same job', async () => {
    const first = await start();
    await addImage(first);
    const before = await deliver(first, 'd1');
    await first.drop();
    servers.pop();
    const second = await start();
    expect(await deliver(second, 'd1')).toEqual({ status: 200, jobs: before.jobs });
    expect(await deliver(second, 'd2')).toEqual({ status: 200, jobs: before.jobs });
    expect(second.plane.decider.cache.count('job')).toBe(1);
  });

  it('a job that was stored and not reported is reported', async () => {
    const { token: _, ...withoutToken } = forge.hook();
    const first = await startTestServer({ store, forges: { hooks: [withoutToken], fetch: systemFetch } });
    servers.push(first);
    await addImage(first);
    const { jobs } = await deliver(first, 'd1');
    await first.drop();
    servers.pop();
    expect(forge.statuses).toEqual([]);
    const second = await start();
    await expect.poll(() => jobOf(second, jobs[0])?.status.commitStatus).toEqual({ state: 'queued', final: false });
    expect(forge.statuses).toMatchObject([{ sha: testSha(1), state: 'pending' }]);
  });
});

describe('two control planes on one store', () => {
  it('make one job of one delivery', async () => {
    const [one, two] = [await start(), await start()];
    await addImage(one);
    await expect.poll(() => two.plane.decider.cache.count('image')).toBe(1);
    const answers = await Promise.all([one, two, one, two].map((server, i) => deliver(server, `d${i % 2}`)));
    expect(new Set(answers.map(({ jobs }) => jobs[0])).size).toBe(1);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 202]);
  });

  it('see that one push follows the other', async () => {
    const [one, two] = [await start(), await start()];
    await addImage(one);
    await expect.poll(() => two.plane.decider.cache.count('image')).toBe(1);
    const pushes = Array.from({ length: 6 }, (_, i) => ({ before: testSha(i), after: testSha(i + 1) }));
    const answers = await Promise.all(pushes.map((push, i) => deliver(i % 2 === 0 ? one : two, `d${i}`, push)));
    const live = (): readonly boolean[] =>
      answers.map(({ jobs }) => jobOf(one, jobs[0])?.status.cancel === undefined && jobOf(one, jobs[0]) !== undefined);
    await expect.poll(live).toEqual([false, false, false, false, false, true]);
  });
});
