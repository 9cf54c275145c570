import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, reply, TestServer } from '../../test-server.ts';
import { testRun, TestWaits, testWork } from '../../test-work.ts';
import type { HttpConfig } from '../provisioner-config.ts';
import { HttpProvisioner } from './http-provisioner.ts';

const token = '0123456789abcdef';
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-http-'));
  await writeFile(join(folder, 'authorization'), `Bearer ${token}\n`);
});
afterAll(() => rm(folder, { recursive: true }));

let server: TestServer;
let url: string;
beforeEach(async () => {
  server = new TestServer(reply(404));
  url = await server.listen();
});
afterEach(() => server.close());

const hangUp: Answer = (_, response) => void response.socket?.destroy();

/** These answers one after the other, and the last one again and again. */
function answering(...answers: Answer[]): void {
  server.answer = (asked, response) => (answers.length > 1 ? answers.shift() : answers[0])?.(asked, response);
}

function provisionerOf(changes: Partial<HttpConfig> = {}, waits = new TestWaits()): HttpProvisioner {
  const config: HttpConfig = {
    url: `${url}/spares`,
    searchUrl: `${url}/spares/{spare}`,
    releaseUrl: `${url}/spares/{spare}`,
    secretHeaders: { Authorization: join(folder, 'authorization') },
    timeoutMs: 100_000,
    pollMs: 1_000,
    ...changes,
  };
  // What is given as undefined is not configured.
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)) as HttpConfig;
  return new HttpProvisioner(given, { field: 'provisioners.m.http', clock: waits.clock });
}
const unsearchable = { searchUrl: undefined } as unknown as Partial<HttpConfig>;

const asked = () => server.asked.map(({ what }) => what.split(' ')[0]).join(' ');
const made = reply(201, { address: '10.0.0.9', name: 'node-9' });
const done = { is: 'done', address: '10.0.0.9', name: 'node-9' };

it('tells the service all of the spare', async () => {
  answering(made);
  const work = testWork('spare_1', { attempt: 2, pool: 'edge', variables: { release: '12' } });
  expect(await provisionerOf().provision(work, testRun())).toEqual(done);
  expect(JSON.parse(server.asked[0]?.body ?? '')).toEqual({
    spareId: 'spare_1',
    attempt: 2,
    name: 'web',
    project: 'default',
    pool: 'edge',
    host: 'rack1',
    address: '10.0.0.1',
    cpus: 4,
    memoryMiB: 1024,
    diskGiB: 20,
    variables: { release: '12' },
  });
  expect(server.asked[0]?.headers).toMatchObject({
    authorization: `Bearer ${token}`,
    'idempotency-key': 'spare_1-2',
  });
});

describe('a service', () => {
  const running = (message: string) => reply(200, { status: 'running', message });
  it.each<[string, readonly Answer[], object, string]>([
    ['that makes it at once', [made], done, 'POST'],
    ['that takes its time', [reply(202), running('a'), running('b'), reply(200, done)], done, 'POST GET GET GET'],
    ['that finds it only after a moment', [reply(202), reply(404), reply(200, done)], done, 'POST GET GET'],
    ['that forgets it', [reply(202), reply(404)], { is: 'failed' }, 'POST GET GET GET'],
    [
      'that fails later',
      [reply(202), reply(200, { status: 'failed', message: 'no disk' })],
      { why: 'no disk' },
      'POST GET',
    ],
    ['that is away for a moment', [reply(202), reply(503), hangUp, reply(200, done)], done, 'POST GET GET GET'],
    ['that refuses it', [reply(422, { message: 'no such pool' })], { is: 'failed', refused: true }, 'POST'],
    ['whose answer is lost, and that made it', [hangUp, reply(200, done)], done, 'POST GET'],
    ['whose answer is lost, and that did not', [hangUp, reply(404)], { is: 'failed' }, 'POST GET'],
    ['whose answer is lost, and that cannot be asked', [hangUp, reply(403)], { is: 'unknown' }, 'POST GET'],
    ['that breaks, and made it', [reply(504), reply(200, done)], done, 'POST GET'],
    ['that lets it not be searched any more', [reply(202), reply(401)], { is: 'unknown' }, 'POST GET'],
  ])('%s', async (_, answers, expected, calls) => {
    answering(...answers);
    expect(await provisionerOf().provision(testWork('spare_1'), testRun())).toMatchObject(expected);
    expect(asked()).toBe(calls);
  });

  it('that never ends has failed', async () => {
    answering(reply(202), running('for ever'));
    const run = testRun();
    expect(await provisionerOf().provision(testWork('spare_1'), run)).toEqual({
      is: 'failed',
      why: 'it was not made within 100 s',
    });
    expect(run.notes).toEqual(['for ever']);
  });

  it('that shows the token is not quoted', async () => {
    answering(reply(400, { message: `bad token ${token}` }));
    const outcome = await provisionerOf().provision(testWork('spare_1'), testRun());
    expect(outcome).toMatchObject({ why: 'the service answered 400: bad token ***' });
  });
});

describe('after a crash', () => {
  it.each<[string, Partial<HttpConfig>, readonly Answer[], object, string]>([
    ['a spare that was made is found', {}, [reply(200, done)], done, 'GET'],
    ['a spare that is not there is made', {}, [reply(404), made], done, 'GET POST'],
    ['one that failed has failed', {}, [reply(200, { status: 'failed' })], { is: 'failed' }, 'GET'],
    ['a person decides where it cannot be searched', unsearchable, [made], { is: 'unknown' }, ''],
    ['a person decides where the search is refused', {}, [reply(403)], { is: 'unknown' }, 'GET'],
  ])('%s', async (_, changes, answers, expected, calls) => {
    answering(...answers);
    const run = testRun({ resumed: true });
    expect(await provisionerOf(changes).provision(testWork('spare_1'), run)).toMatchObject(expected);
    expect(asked()).toBe(calls);
  });

  it('a person decides where the service does not answer for long', async () => {
    const waits = new TestWaits();
    const run = testRun({ resumed: true });
    answering(reply(500));
    expect(await provisionerOf({}, waits).provision(testWork('spare_1'), run)).toMatchObject({ is: 'unknown' });
    expect(waits.elapsedMs).toBeGreaterThanOrEqual(100_000);
  });
});

describe('without a URL to search', () => {
  it.each<[string, Answer, object]>([
    ['a spare that is made is done', made, done],
    ['one that is accepted has failed', reply(202), { is: 'failed' }],
    ['one that is under way has failed', reply(200, { status: 'running' }), { is: 'failed' }],
    ['one whose answer is lost is for a person', hangUp, { is: 'unknown' }],
    ['one that is refused has failed', reply(400), { is: 'failed', refused: true }],
  ])('%s', async (_, answer, expected) => {
    answering(answer);
    expect(await provisionerOf(unsearchable).provision(testWork('spare_1'), testRun())).toMatchObject(expected);
  });
});

describe('a release', () => {
  it.each<[string, Answer, object]>([
    ['of a spare', reply(204, ''), { is: 'done' }],
    ['of one that is not there', reply(404), { is: 'done' }],
    ['that is refused', reply(409, { message: 'in use' }), { is: 'failed', why: 'the service answered 409: in use' }],
    ['without an answer', hangUp, { is: 'failed' }],
  ])('%s', async (_, answer, expected) => {
    answering(answer);
    expect(await provisionerOf().release(testWork('spare_1'), testRun())).toMatchObject(expected);
    expect(asked()).toBe('DELETE');
  });

  it('does nothing unless it is configured', async () => {
    const changes = { releaseUrl: undefined } as unknown as Partial<HttpConfig>;
    expect(await provisionerOf(changes).release(testWork('spare_1'), testRun())).toEqual({ is: 'done' });
    expect(asked()).toBe('');
  });

  it('without its secret has failed, and tells no path', async () => {
    const changes = { secretHeaders: { Authorization: join(folder, 'missing') } };
    expect(await provisionerOf(changes).release(testWork('spare_1'), testRun())).toEqual({
      is: 'failed',
      why: 'provisioners.m.http.secretHeaders.Authorization of the server cannot be used',
    });
  });
});
