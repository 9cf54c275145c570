import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { startTestServer } from '../testing.ts';
import { PlacementApp } from './app.ts';
import { placementSettings } from './settings.ts';
import { type Ask, placementClient } from './testing.ts';

describe('placementNoAuth', () => {
  const rows: [name: string, listen: string, placementListen: string | undefined, noAuth: boolean, warning: RegExp][] =
    [
      ['on loopback', '127.0.0.1:7070', undefined, true, /takes any name in X-Auth-Token/],
      ['for other machines', '0.0.0.0:7070', undefined, false, /has no effect/],
      ['with a listener for other machines', '127.0.0.1:7070', '10.0.0.5:8778', false, /has no effect/],
    ];
  it.each(rows)('%s', (_, listen, placementListen, noAuth, warning) => {
    const warned: string[] = [];
    const log = { ...silentLogger, warn: (message: string) => void warned.push(message) };
    const config = { listen, placementNoAuth: true, placementRandomCandidates: false };
    const settings = placementSettings(placementListen === undefined ? config : { ...config, placementListen }, log);
    expect(settings.noAuth).toBe(noAuth);
    expect(warned).toEqual([expect.stringMatching(warning)]);
  });
});

describe('a server without authentication', () => {
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let ask: Ask;
  beforeAll(async () => {
    server = await startTestServer({ placementNoAuth: true });
    ask = placementClient(server.url);
    for (const at of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const uuid = `77777777-7777-4777-8777-77777777777${at}`;
      const headers = { 'x-auth-token': 'admin' };
      await ask('POST', '/resource_providers', { headers, body: { name: `p${at}`, uuid } });
      const body = { inventories: { VCPU: { total: 8 } }, resource_provider_generation: 0 };
      await ask('PUT', `/resource_providers/${uuid}/inventories`, { headers, body });
    }
  });
  afterAll(() => server.close());

  it.each([
    ['admin', '/resource_providers', 200],
    ['admin:any', '/usages?project_id=web', 200],
    ['user:web', '/usages?project_id=web', 200],
    ['user:web', '/usages?project_id=other', 403],
    ['user:web', '/resource_providers', 403],
    ['user', '/', 200],
  ])('takes %s for who asks for %s: %i', async (token, path, status) => {
    expect((await ask('GET', path, { headers: { 'x-auth-token': token } })).status).toBe(status);
  });

  it.each([
    ['admin', undefined, '/resource_providers', 200],
    ['service', undefined, '/resource_providers', 200],
    ['member,reader', undefined, '/resource_providers', 403],
    ['member, reader', 'web', '/usages?project_id=web', 200],
    ['reader', 'other', '/usages?project_id=web', 403],
    ['', 'web', '/usages?project_id=web', 403],
    ['auditor', 'web', '/usages?project_id=web', 403],
  ])('believes roles "%s" in project %s for who asks for %s: %i', async (roles, project, path, status) => {
    const as = {
      'x-auth-token': 'user',
      'x-roles': roles,
      ...(project === undefined ? {} : { 'x-project-id': project }),
    };
    expect((await ask('GET', path, { headers: as })).status).toBe(status);
  });

  it('gives the name admin no rights that its roles lack', async () => {
    const headers = { 'x-auth-token': 'admin', 'x-roles': 'reader' };
    expect((await ask('PUT', '/traits/CUSTOM_NOT_MINE', { headers })).status).toBe(403);
  });

  it('refuses requests without a name', async () => {
    const answer = await fetch(`${server.url}/placement/resource_providers`);
    expect(answer.status).toBe(401);
  });

  it.each([
    [false, 1],
    [true, 8],
  ])('random order %s: %i providers come first at times', async (randomOrder, different) => {
    const { decider } = server.plane;
    const app = new PlacementApp({ decider, log: silentLogger, randomOrder });
    const firsts = new Set<string>();
    for (let times = 0; times < 200; times++) {
      const { status, body } = await app.handle({
        ...{ method: 'GET', path: '/allocation_candidates', query: new URLSearchParams('resources=VCPU:1&limit=1') },
        ...{
          headers: { 'openstack-api-version': 'placement 1.39' },
          body: '',
          mount: '',
          origin: '',
          requestId: 'req-1',
        },
        caller: { mayRead: true, mayWrite: false },
      });
      expect(status).toBe(200);
      firsts.add(Object.keys(JSON.parse(body).provider_summaries).join());
    }
    expect(firsts.size).toBe(different); // of 8: to miss one of them in 200 draws has a chance of 1 in 10^10
  });
});
