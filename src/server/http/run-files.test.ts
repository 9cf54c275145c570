import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemFetch } from '../../base/system.ts';
import type { JobAttempt, JobStatus } from '../../api/resources/job.ts';
import { keys } from '../../core/state/keys.ts';
import { decideAndCommit } from '../decide.ts';
import { startTestServer, testRegistration } from '../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let epoch: number;
let made = 0;

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

const attempt = (instance: { name: string; id: string }, changes: Partial<JobAttempt> = {}): JobAttempt => ({
  number: 1,
  instance: instance.name,
  instanceId: instance.id,
  createdAtMs: 1,
  ...changes,
});

async function writeStatus(job: string, status: JobStatus): Promise<void> {
  await decideAndCommit(server.plane.decider, (snapshot) => {
    const entry = snapshot.get('job', keys.job('default', job));
    if (!entry) throw new Error('no job');
    return { plan: { changes: [{ key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status } }] } };
  });
}

let instance: { name: string; id: string };
let job: string;
let log: string;

/** A job whose first attempt runs on h1. */
beforeEach(async () => {
  made += 1;
  job = `job-${made}`;
  await server.client.create('job', { metadata: { name: job }, spec: { image: 'tiny', script: 'true' } });
  const created = await server.client.create('instance', {
    metadata: { name: `${job}-1` },
    spec: {
      image: 'tiny',
      run: { script: 'true', env: {}, artifacts: [], timeLimitMs: 1000, graceMs: 0, holdOnFailure: false },
    },
  });
  instance = { name: created.metadata.name, id: created.metadata.id };
  log = `/v1/hosts/h1/runs/${instance.id}/log`;
});

const running = (changes: Partial<JobStatus> = {}): JobStatus => ({
  phase: 'Running',
  attempt: 1,
  instance: instance.name,
  attempts: [attempt(instance)],
  ...changes,
});

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
  beforeEach(() => writeStatus(job, running()));

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
    ['an unknown instance', () => put(log.replace(instance.id, 'inst_0'), 0, 'x'), 404, 'NotFound'],
    ['a path for an instance', () => put(log.replace(instance.id, '..%2f..'), 0, 'x'), 404, 'NotFound'],
    ['another part', () => put(log.replace(/log$/, 'passwd'), 0, 'x'), 404, 'NotFound'],
  ];
  it.each(refused)('is refused when it is %s', async (_name, call, status, code) => {
    const answer = await call();
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([status, code]);
    expect((await send('GET', `/v1/jobs/${job}/log`, { token: 'operator' })).text).toBe('');
  });

  it('is refused when the outcome of the attempt is recorded', async () => {
    await writeStatus(job, running({ phase: 'Failed', attempts: [attempt(instance, { outcome: 'failure' })] }));
    const answer = await put(log, 0, 'x');
    expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('is over')]);
  });
});

describe('a reader of the log', () => {
  const read = (query = '') => send('GET', `/v1/jobs/${job}/log${query}`, { token: 'operator' });

  /** Resolves when the answer has begun. */
  const follow = () =>
    systemFetch(`${server.url}/v1/jobs/${job}/log?follow=true`, { headers: { authorization: 'Bearer operator' } });

  it('gets an empty one of a job without attempts', async () => {
    expect(await read()).toMatchObject({ status: 200, text: '' });
    expect((await read('?attempt=1')).status).toBe(404);
    expect((await send('GET', '/v1/jobs/none/log', { token: 'operator' })).status).toBe(404);
  });

  it('begins where it is told to', async () => {
    await writeStatus(job, running());
    await put(log, 0, 'one\ntwo\n');
    const answer = await read('?offset=4');
    expect(answer.text).toBe('two\n');
    expect(answer.headers.get('berth-log-offset')).toBe('4');
    expect(answer.headers.get('berth-job-attempt')).toBe('1');
    expect((await read('?offset=99')).text).toBe('');
  });

  it('follows from before the first attempt to the last byte of it', async () => {
    const whole = await follow();
    await writeStatus(job, running());
    await put(log, 0, 'one\n');
    await put(log, 4, 'two\n');
    await writeStatus(
      job,
      running({ phase: 'Succeeded', attempts: [attempt(instance, { outcome: 'succeeded', logBytes: 8 })] }),
    );
    expect(await whole.text()).toBe('one\ntwo\n');
    expect((await read('?follow=true&offset=4')).text).toBe('two\n');
    expect((await read('?attempt=2&follow=true')).status).toBe(404);
  });

  it('ends when the job is deleted', async () => {
    const whole = await follow();
    await decideAndCommit(server.plane.decider, (snapshot) => {
      const key = keys.job('default', job);
      return { plan: { changes: [{ key, ifRevision: snapshot.get('job', key)?.revision ?? 0, value: null }] } };
    });
    expect(await whole.text()).toBe('');
  });
});

it('gives the artifacts of an attempt that is over', async () => {
  const read = (query = '') => send('GET', `/v1/jobs/${job}/artifacts${query}`, { token: 'operator' });
  expect((await read()).text).toContain('has no artifacts yet: its phase is Queued');
  await writeStatus(job, running());
  await put(log.replace(/log$/, 'artifacts'), 0, 'tar');
  expect((await read()).text).toContain('its phase is Running');
  await writeStatus(job, running({ phase: 'Succeeded', attempts: [attempt(instance, { outcome: 'succeeded' })] }));
  const answer = await read();
  expect([answer.status, answer.text, answer.headers.get('content-length')]).toEqual([200, 'tar', '3']);
  expect((await read('?attempt=2')).text).toContain('no attempt 2: the last is 1');
});

it('says why a job has no artifacts', async () => {
  await writeStatus(job, running({ phase: 'Succeeded', attempts: [attempt(instance, { outcome: 'succeeded' })] }));
  const answer = await send('GET', `/v1/jobs/${job}/artifacts`, { token: 'operator' });
  expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('spec.artifacts is empty')]);
});
