// A flood on few connections, pipelined, beside a project that writes now and then: connections that are not read meanwhile are read again.

import { connect, Socket } from 'node:net';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import { startTestServer } from '../../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;

beforeAll(async () => {
  const store = createMemoryStore();
  const commit = store.commit.bind(store);
  // Like a disk: requests come while it works.
  store.commit = async (conditions, writes) => {
    await new Promise((resolve) => setImmediate(resolve));
    return commit(conditions, writes);
  };
  server = await startTestServer({ store });
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///nowhere' } });
});
afterAll(() => server.close());

const perConnection = 200;

/** Resolves with how many creates were answered when all were. */
function flood(nth: number): Promise<number> {
  const { hostname, port } = new URL(server.url);
  const client = connect(Number(port), hostname);
  for (let i = 0; i < perConnection; i++) {
    const body = JSON.stringify({ metadata: { name: `f${nth}-${i}`, project: 'flood' }, spec: { image: 'tiny' } });
    client.write(
      `POST /v1/instances HTTP/1.1\r\nhost: x\r\nauthorization: Bearer operator\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
  }
  return new Promise((resolve, reject) => {
    let said = '';
    client.on('error', reject);
    client.on('data', (bytes) => {
      said += bytes.toString();
      const answered = said.split('HTTP/1.1 201 ').length - 1;
      if (answered < perConnection) return;
      client.destroy();
      resolve(answered);
    });
  });
}

it('answers every create of both', async () => {
  const paused = vi.spyOn(Socket.prototype, 'pause');
  const quiet = (i: number) =>
    server.client.create('instance', { metadata: { name: `q${i}`, project: 'quiet' }, spec: { image: 'tiny' } });
  await quiet(0);
  const floods = Promise.all([1, 2, 3, 4].map(flood));
  for (let i = 1; i < 10; i++) expect((await quiet(i)).metadata.name).toBe(`q${i}`);
  expect(await floods).toEqual([perConnection, perConnection, perConnection, perConnection]);
  expect(paused).toHaveBeenCalled();
});
