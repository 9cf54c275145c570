// Lines of what does not come as a request of a client: webhooks, and WebSockets into guests.

import { request } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { accessSubprotocol } from '../../api/access-protocol.ts';
import { systemFetch } from '../../base/system.ts';
import { headersOf, pushBody, send, TestForge } from '../intake/forges/testing.ts';
import { startTestServer, testRegistration } from '../testing.ts';
import { linesIn, testFolder, testSettings } from './testing.ts';

async function startAudited(options: Parameters<typeof startTestServer>[0] = {}) {
  const directory = testFolder();
  const server = await startTestServer({ audit: testSettings(directory), ...options });
  onTestFinished(() => server.close());
  return { ...server, lines: () => linesIn(directory) };
}

it('has a line for the job of a webhook, and for one with a false signature', async () => {
  const forge = await new TestForge('github').start();
  onTestFinished(() => forge.stop());
  const hooks = [forge.hook({ name: 'gh' })];
  const { url, client, lines } = await startAudited({ forges: { hooks, fetch: systemFetch } });
  await client.create('image', { metadata: { name: 'default' }, spec: { source: 'file:///debian.img' } });

  const deliver = (id: string, body: string, secret?: string) => {
    const headers = headersOf({ forge: 'github', event: 'push', id, body }, secret);
    return send(`${url}/v1/hooks/gh`, { body, headers });
  };
  const push = pushBody(forge);
  const { json } = await deliver('d1', push);
  const { jobs } = json as { jobs: string[] }; // of a delivery that was taken
  expect(lines().at(-1)).toMatchObject({
    ...{ face: 'forge', who: 'intake/gh', verb: 'create', kind: 'job', project: 'default', object: jobs[0] },
    ...{ outcome: 'done', address: '127.0.0.1', revision: expect.any(Number) },
  });
  const before = lines().length;
  expect(await deliver('d2', pushBody(forge, { ref: 'refs/heads/evil' }), 'guessed')).toMatchObject({ status: 401 });
  const after = lines().slice(before);
  expect(after).toEqual([expect.objectContaining({ outcome: 'refused', reason: 'Unauthenticated' })]);
  expect(after[0]).not.toHaveProperty('who');
});

it('has the lines of the Placement API: what was changed and what was refused, by whom', async () => {
  const { url, lines } = await startAudited();
  const before = lines().length;
  const uuid = '7d2590ae-fb85-4080-9306-058b4c915e3f';
  const ask = (method: string, path: string, body?: object) =>
    fetch(`${url}/placement${path}`, {
      method,
      headers: {
        'x-auth-token': 'operator',
        'openstack-api-version': 'placement 1.39',
        'content-type': 'application/json',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  expect((await ask('POST', '/resource_providers', { name: 'outside', uuid })).status).toBe(200);
  expect((await ask('PUT', `/resource_providers/${uuid}`, {})).status).toBe(400);
  expect((await ask('GET', '/resource_providers')).status).toBe(200);
  const about = { who: 'admin', face: 'placement', kind: 'resource_providers', address: '127.0.0.1' };
  expect(lines().slice(before)).toEqual([
    expect.objectContaining({
      ...about,
      verb: 'create',
      outcome: 'done',
      revision: expect.any(Number),
      body: expect.any(String),
    }),
    expect.objectContaining({ ...about, verb: 'update', object: uuid, outcome: 'refused' }),
  ]);
});

it('has lines of reads that the Placement API refuses, as of those of other routes', async () => {
  const { url, lines } = await startAudited();
  const before = lines().length;
  const read = async (token: string) =>
    (await fetch(`${url}/placement/resource_providers`, { headers: { 'x-auth-token': token } })).status;
  expect([await read('guessed'), await read('host:rack-1')]).toEqual([401, 403]);
  const about = { face: 'placement', verb: 'GET', object: '/placement/resource_providers', outcome: 'refused' };
  expect(lines().slice(before)).toEqual([
    expect.objectContaining({ ...about, reason: 'Unauthenticated' }),
    expect.objectContaining({ ...about, reason: 'Forbidden', who: 'host/rack-1' }),
  ]);
});

it('has the line of a WebSocket into a guest before it opens, and one for each that is refused', async () => {
  const { url, client, agentClient, plane, lines } = await startAudited();
  await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny.img' } });
  await agentClient('rack-1').register(testRegistration());
  await client.create('instance', { metadata: { name: 'web' }, spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } });
  const { metadata } = await client.get('instance', 'web');
  expect(plane.decider.cache.get('instance', 'instances/default/web')?.value.status.host).toBe('rack-1');

  const ways = [
    ['console', 'console'],
    ['exec', 'exec'],
    ['vnc', 'screen'],
    ['ports/80', 'forward'],
  ] as const;
  const before = lines().length;
  const knockAll = (authorization: string) =>
    Promise.all(ways.map(([way]) => knock(`${url}/v1/instances/web/${way}`, authorization)));
  // The host has not dialled: what is tried is logged, and that it failed.
  for (const status of await knockAll('Bearer operator')) expect(status).toBeGreaterThanOrEqual(500);
  for (const [, verb] of ways) {
    const about = { who: 'admin', face: 'http', verb, kind: 'instance', object: 'web', objectId: metadata.id };
    const told = lines().slice(before);
    expect(told.filter((line) => line['verb'] === verb)).toEqual([
      expect.objectContaining({ ...about, outcome: 'begun', address: '127.0.0.1', request: expect.any(String) }),
      expect.objectContaining({ ...about, outcome: 'failed', reason: 'HostUnreachable' }),
    ]);
  }
  const begun = lines().length;
  expect(await knockAll('Bearer guessed')).toEqual(ways.map(() => 401));
  expect(lines().slice(begun)).toEqual(
    ways.map(() => expect.objectContaining({ outcome: 'refused', reason: 'Unauthenticated' })),
  );
});

/** The status with which an upgrade is refused. */
function knock(url: string, authorization: string): Promise<number | undefined> {
  const headers = {
    ...{ authorization, connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
    ...{ 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-protocol': accessSubprotocol },
  };
  return new Promise((resolve, reject) => {
    request(url, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}
