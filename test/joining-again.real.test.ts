// A host whose certificate expired too long ago to be renewed joins again with its key, and is the same host; no other machine can take its place.

import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { certificateRequest, signatureOf } from '../src/agent/enrolment/certificate-request.ts';
import { joinFleet } from '../src/agent/enrolment/join.ts';
import { createUserClient } from '../src/api/client/user-client.ts';
import { systemClock } from '../src/base/system.ts';
import { TlsFetch } from '../src/base/tls/tls-fetch.ts';
import { startTlsServer } from '../src/server/tls/test-tls.ts';

const dayMs = 86_400_000;

it('a host that was away for over a month joins again', async () => {
  let aheadMs = 0;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
  const tls = await startTlsServer({}, clock);
  onTestFinished(() => tls.close());
  const { url, operatorToken } = tls.server;
  const fetch = new TlsFetch(() => ({ ca: tls.ca }));
  onTestFinished(() => fetch.close());
  const client = createUserClient({ fetch: fetch.fetch, url, token: operatorToken });
  const joinFrom = async (folder: string) => {
    const dataDirectory = join(tls.directory, folder);
    await mkdir(dataDirectory, { recursive: true });
    const { token } = await client.json<{ token: string }>('/v1/join-tokens', { method: 'POST', body: {} });
    const nowMs = clock.nowMs();
    return joinFleet({ serverUrl: url, token, hostName: 'h1', dataDirectory, userAgent: 'test', nowMs });
  };
  const renew = async ({ key, certificate }: Awaited<ReturnType<typeof joinFrom>>['identity']) => {
    const request = await certificateRequest(key, 'h1');
    return client.json('/v1/renew', {
      method: 'POST',
      body: { certificate, request, signature: signatureOf(request, key) },
    });
  };

  const { identity: first } = await joinFrom('agent');
  aheadMs = 30 * dayMs; // expired for 29 days: it renews, and does not join
  expect((await joinFrom('agent')).already).toBe(true);
  aheadMs = 32 * dayMs;
  await expect(renew(first)).rejects.toMatchObject({
    code: 'Unauthenticated',
    message: expect.stringContaining('expired over 30 days ago; join again with "berth agent join"'),
  });
  await expect(joinFrom('another-machine')).rejects.toMatchObject({ code: 'Conflict', field: 'host' });
  await rm(join(tls.directory, 'another-machine'), { recursive: true });

  const again = await joinFrom('agent');
  expect(again).toMatchObject({ already: false, identity: { hostId: first.hostId, key: first.key } });
  expect((await client.get('host', 'h1')).metadata.id).toBe(first.hostId);
  await renew(again.identity);
  await expect(renew(first)).rejects.toMatchObject({ code: 'Unauthenticated' });
  expect((await joinFrom('agent')).already).toBe(true);
});
