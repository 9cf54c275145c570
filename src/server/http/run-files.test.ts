import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemFetch } from '../../base/system.ts';
import type { GuestStatus } from '../../api/agent-protocol.ts';
import { isFinal, type Job } from '../../api/resources/job.ts';
import type { RunStatus } from '../../api/resources/run.ts';
import { startTestServer, testRegistration } from '../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let epoch: number;
let made = 0;
let reports = 0;

beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'file:///tmp/tiny.qcow2', defaults: { cpus: 1, memoryMiB: 16, diskGiB: 1 } },
  });
  const session = await server.agentClient('h1').register({
    ...testRegistration(),
    capacity: { VCPU: 400, MEMORY_MB: 81_920, DISK_GB: 1000 },
  });
  epoch = session.epoch;
});
afterAll(() => server.close());

async function send(method: string, path: string, { token = 'host:h1', body }: { token?: string; body?: string } = {}) {
  const response = await systemFetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/octet-stream' }),
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  return { status: response.status, text, headers: response.headers };
}

/** Resolves with the job once it is as wanted. */
async function until(name: string, wanted: (job: Job) => boolean): Promise<Job> {
  const { items, revision } = await server.client.list('job');
  const found = items.find(({ metadata }) => metadata.name === name);
  if (found && wanted(found)) return found;
  for await (const change of server.client.watch('job', { revision }))
    if (change.type === 'put' && change.resource.metadata.name === name && wanted(change.resource))
      return change.resource;
  throw new Error('the watch ended');
}

let job: string;
let instanceId: string;
let log: string;

/** A job whose first attempt is placed on h1. */
beforeEach(async () => {
  made += 1;
  job = `job-${made}`;
  await server.client.create('job', { metadata: { name: job }, spec: { image: 'tiny', script: 'true' } });
  const { status } = await until(job, ({ status: { phase } }) => phase === 'Placing');
  instanceId = status.attempts[0]?.instanceId ?? '';
  log = `/v1/hosts/h1/runs/${instanceId}/log`;
});

/** The agent reports the end of the program. */
async function end(run: Partial<RunStatus> = {}): Promise<void> {
  reports += 1;
  const ended: RunStatus = { state: 'ended', outcome: 'exited', exitCode: 0, ...run };
  const guest: GuestStatus = { state: 'running', ready: true, ports: [], phases: [], run: ended };
  const report = { instanceId, incarnation: 1, sequence: reports, observedGeneration: 1, guest };
  await server.agentClient('h1').report({ epoch, reports: [report] });
  await until(job, ({ status }) => isFinal(status.phase));
}

const put = (
  path: string,
  offset: number,
  body: string,
  more: { token?: string; epoch?: number; incarnation?: number } = {},
) =>
  send('PUT', `${path}?epoch=${more.epoch ?? epoch}&incarnation=${more.incarnation ?? 1}&offset=${offset}`, {
    ...more,
    body,
  });

describe('an agent', () => {
  it('appends to the log and the artifacts of its run', async () => {
    expect(await put(log, 0, 'one\n')).toMatchObject({ status: 200, text: '{"size":4}' });
    expect(await put(log, 2, 'e\ntwo\n')).toMatchObject({ status: 200, text: '{"size":8}' });
    expect(await put(log.replace(/log$/, 'artifacts'), 0, 'tar')).toMatchObject({ status: 200, text: '{"size":3}' });
    const gap = await put(log, 9, 'x');
    expect([gap.status, JSON.parse(gap.text).error.details]).toEqual([409, { size: 8 }]);
  });

  const refused: [name: string, call: () => ReturnType<typeof put>, status: number, code: string][] = [
    ['another host', () => put(log, 0, 'x', { token: 'host:h2' }), 403, 'Forbidden'],
    ['a user', () => put(log, 0, 'x', { token: 'nobody' }), 401, 'Unauthenticated'],
    [
      'another host under its own name',
      () => put(log.replace('h1', 'h2'), 0, 'x', { token: 'host:h2' }),
      404,
      'NotFound',
    ],
    ['a session that is not known here', () => put(log, 0, 'x', { epoch: epoch + 1 }), 503, 'Unavailable'],
    ['another incarnation', () => put(log, 0, 'x', { incarnation: 2 }), 404, 'NotFound'],
    ['an unknown instance', () => put(log.replace(instanceId, 'inst_0'), 0, 'x'), 404, 'NotFound'],
    ['a path for an instance', () => put(log.replace(instanceId, '..%2f..'), 0, 'x'), 404, 'NotFound'],
    ['another part', () => put(log.replace(/log$/, 'passwd'), 0, 'x'), 400, 'InvalidRequest'],
  ];
  it.each(refused)('is refused when it is %s', async (_name, call, status, code) => {
    const answer = await call();
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([status, code]);
    expect((await send('GET', `/v1/jobs/${job}/log`, { token: 'operator' })).text).toBe('');
  });

  it('is refused when the outcome of the attempt is recorded', async () => {
    await end({ exitCode: 1 });
    const answer = await put(log, 0, 'x');
    expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('is over')]);
  });
});

describe('a reader of the log', () => {
  const read = (query = '') => send('GET', `/v1/jobs/${job}/log${query}`, { token: 'operator' });

  /** Resolves when the answer has begun. */
  const follow = (path: string) =>
    systemFetch(`${server.url}/v1/jobs/${path}`, { headers: { authorization: 'Bearer operator' } });

  it('gets an empty one of a job without attempts, or follows it from there', async () => {
    await server.client.create('project', { metadata: { name: 'full' }, spec: { quota: { INSTANCES: 0 } } });
    const of = (query: string) => send('GET', `/v1/jobs/waits/log?project=full${query}`, { token: 'operator' });
    const metadata = { name: 'waits', project: 'full' };
    await server.client.create('job', { metadata, spec: { image: 'tiny', script: 'true' } });
    expect((await server.client.get('job', 'waits', { project: 'full' })).status).toMatchObject({ queuePosition: 1 });
    expect((await server.client.list('job', { project: 'full' })).items[0]?.status).toMatchObject({ queuePosition: 1 });
    expect(await of('')).toMatchObject({ status: 200, text: '' });
    expect((await of('&attempt=1')).status).toBe(404);
    const whole = await follow('waits/log?project=full&follow=true');
    await server.client.replace('project', 'full', { spec: { quota: { INSTANCES: 1 } } });
    const { status } = await until('waits', ({ status: { phase } }) => phase === 'Placing');
    await put(`/v1/hosts/h1/runs/${status.attempts[0]?.instanceId}/log`, 0, 'one\n');
    await server.client.delete('job', 'waits', { project: 'full' });
    expect(await whole.text()).toBe('one\n');
    expect((await send('GET', '/v1/jobs/none/log', { token: 'operator' })).status).toBe(404);
  });

  it('begins where it is told to', async () => {
    await put(log, 0, 'one\ntwo\n');
    const answer = await read('?offset=4');
    expect(answer.text).toBe('two\n');
    expect(answer.headers.get('berth-log-offset')).toBe('4');
    expect(answer.headers.get('berth-job-attempt')).toBe('1');
    expect((await read('?offset=99')).text).toBe('');
  });

  it('is told when it is not there any more', async () => {
    await end({ logBytes: 8 });
    const answer = await read();
    expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('is not kept any more')]);
  });

  it('follows it to the last byte that was sent', async () => {
    const whole = await follow(`${job}/log?follow=true`);
    await put(log, 0, 'one\n');
    await put(log, 4, 'two\n');
    await end({ logBytes: 8 });
    expect(await whole.text()).toBe('one\ntwo\n');
    expect((await read('?follow=true&offset=4')).text).toBe('two\n');
    expect((await read('?attempt=2&follow=true')).status).toBe(404);
  });
});

describe('the artifacts of a job', () => {
  const read = (query = '') => send('GET', `/v1/jobs/${job}/artifacts${query}`, { token: 'operator' });

  it('are there when the attempt is over', async () => {
    await put(log.replace(/log$/, 'artifacts'), 0, 'tar');
    expect((await read()).text).toContain('has no artifacts yet: its phase is Placing');
    await end();
    const answer = await read();
    expect([answer.status, answer.text, answer.headers.get('content-length')]).toEqual([200, 'tar', '3']);
    expect((await read('?attempt=2')).text).toContain('no attempt 2: the last is 1');
  });

  it('are none where none were asked for', async () => {
    await end();
    const answer = await read();
    expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('spec.artifacts is empty')]);
  });
});
