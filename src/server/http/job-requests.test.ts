// JobRequests over HTTP, and what only Berth may say of a job.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { Query } from './route.ts';
import { startTestServer } from '../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'file:///tiny', architecture: 'amd64', format: 'qcow2', aliases: ['default'] },
  });
});
afterAll(() => server.close());

const request = {
  schema_version: 'jobrequest.v1',
  request_id: '0B2A1F64-6A5E-4A53-9F0A-6F6F5E1D2C3B',
  source: 'manual',
  repo_url: 'http://git.test/app.git',
  commit_sha: 'a'.repeat(40),
  submitted_at: '2026-11-26T03:00:00Z',
};
const name = `req-${request.request_id.toLowerCase()}`;

it('makes one job of a request, however often it comes', async () => {
  const first = await server.client.createJobRequest(request);
  const again = await server.client.createJobRequest({ ...request, submitted_at: '2026-11-26T04:00:00Z' });
  expect(first.metadata).toMatchObject({ name, project: 'default' });
  expect(again.metadata.id).toBe(first.metadata.id);
  expect(first.spec).not.toHaveProperty('request'); // no broker takes its result
});

it.each([
  ['another body', { ...request, commit_sha: 'b'.repeat(40) }, 'IdempotencyMismatch', 'request_id'],
  [
    'an unknown label',
    { ...request, request_id: request.request_id.replace('0', '1'), runs_on: 'x' },
    'InvalidRequest',
    'runs_on',
  ],
  ['no version', { ...request, schema_version: undefined }, 'InvalidRequest', 'schema_version'],
  ['a list', [], 'InvalidRequest', 'body'],
])('refuses %s', async (_name, body, code, field) => {
  await expect(server.client.createJobRequest(body as never)).rejects.toMatchObject({ code, field });
});

it('says so when the job has been deleted since', async () => {
  const id = request.request_id.replace('0', '2');
  await server.client.createJobRequest({ ...request, request_id: id });
  await server.client.cancelJob(`req-${id.toLowerCase()}`);
  await server.client.delete('job', `req-${id.toLowerCase()}`);
  const { cache } = server.plane.decider;
  while (cache.get('job', `jobs/default/req-${id.toLowerCase()}`))
    await new Promise<void>((resolve) => cache.onCommitted(() => resolve()));
  await expect(server.client.createJobRequest({ ...request, request_id: id })).rejects.toMatchObject({
    code: 'Conflict',
    message: expect.stringContaining('take a new request_id'),
  });
});

it('refuses a job whose request a user has set', async () => {
  const request = { requestId: 'r', source: 'x', submittedAt: 'now', replyTo: 'any-queue', digest: 'd' };
  const spec = { script: 'true', request };
  await expect(server.client.create('job', { metadata: { name: 'own' }, spec })).rejects.toMatchObject({
    code: 'InvalidRequest',
    field: 'spec.request',
  });
});

it('has no dead letters without a broker', async () => {
  await expect(server.client.deadLetters()).rejects.toMatchObject({
    code: 'Conflict',
    message: expect.stringContaining('AMQP_URL'),
  });
});

it('tells of the systems around it only where asked', async () => {
  const route = server.plane.routes.find(({ path }) => path === '/readyz');
  const answer = (query: Query): unknown =>
    route?.handle({ headers: {}, query, caller: { principal: { kind: 'admin' } } } as never);
  expect(await answer(new Query([]))).toEqual({ status: 200, json: { ok: true } });
  expect(await answer(new Query([['verbose', '']]))).toEqual({ status: 200, json: { ok: true, parts: [] } });
});
