import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createUserClient } from '../../../../api/client/user-client.ts';
import { systemFetch } from '../../../../base/system.ts';
import { startTestServer, testRegistration } from '../../../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => (server = await startTestServer()));
afterAll(() => server.close());

describe("a host's token", () => {
  it('is told to operators, the same each time, before the host is there', async () => {
    const told = await server.client.hostToken('h1');
    expect(told).toEqual({ host: 'h1', token: expect.stringMatching(/^berth-host\.h1\.[\w-]{43}$/) });
    expect(await server.client.hostToken('h1')).toEqual(told);
    expect((await server.client.hostToken('h2')).token).not.toBe(told.token);
  });

  it('is not told to hosts, nor to who has no token', async () => {
    await server.agentClient('h1').register(testRegistration());
    for (const [token, code] of [
      ['host:h1', 'Forbidden'],
      ['nobody', 'Unauthenticated'],
    ] as const) {
      const client = createUserClient({ fetch: systemFetch, url: server.url, token });
      await expect(client.hostToken('h1')).rejects.toMatchObject({ code });
    }
  });

  it('is refused for what no host can be called, naming the rule', async () => {
    await expect(server.client.hostToken('No_Host')).rejects.toMatchObject({ code: 'InvalidRequest', field: 'host' });
  });
});
