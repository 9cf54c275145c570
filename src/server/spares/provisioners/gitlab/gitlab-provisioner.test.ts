import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { testRun, TestWaits, testWork } from '../../test-work.ts';
import type { GitlabConfig } from '../provisioner-config.ts';
import { GitlabProvisioner } from './gitlab-provisioner.ts';
import { apiToken, type Fault, TestGitlab, triggerToken } from './test-gitlab.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-gitlab-'));
  await writeFile(join(folder, 'trigger'), `${triggerToken}\n`);
  await writeFile(join(folder, 'api'), `${apiToken}\n`);
});
afterAll(() => rm(folder, { recursive: true }));

let gitlab: TestGitlab;
let url: string;
beforeEach(async () => {
  gitlab = new TestGitlab();
  url = await gitlab.listen();
});
afterEach(() => gitlab.close());

function provisionerOf(changes: Partial<GitlabConfig> = {}, waits = new TestWaits()): GitlabProvisioner {
  const config: GitlabConfig = {
    url: `${url}/`,
    project: 'group/spares',
    ref: 'main',
    triggerTokenFile: join(folder, 'trigger'),
    apiTokenFile: join(folder, 'api'),
    variables: { REGION: 'eu', BERTH_SPARE_ID: 'overridden' },
    release: 'none',
    timeoutMs: 100_000,
    pollMs: 1_000,
    ...changes,
  };
  return new GitlabProvisioner(config, { field: 'provisioners.p.gitlab', clock: waits.clock });
}

/** A pipeline that has another status at each wait. */
function passing(...statuses: string[]): TestWaits {
  const waits = new TestWaits();
  waits.onWait = () => {
    const pipeline = gitlab.pipelines.at(-1);
    const next = statuses.shift();
    if (pipeline !== undefined && next !== undefined) pipeline.status = next;
  };
  return waits;
}

const keyOf = (attempt: number, action = 'provision') => ({
  BERTH_SPARE_ID: 'spare_1',
  BERTH_SPARE_ATTEMPT: String(attempt),
  BERTH_SPARE_ACTION: action,
});
const triggers = () => gitlab.requests.filter((request) => request.startsWith('POST')).length;

describe('a spare', () => {
  it('is prepared by a pipeline', async () => {
    const run = testRun();
    const waits = passing('pending', 'manual', 'running', 'success');
    const work = testWork('spare_1', { variables: { PATH: '/evil' }, pool: 'edge' });
    expect(await provisionerOf({}, waits).provision(work, run)).toEqual({ is: 'done' });
    expect(run.notes.map((note) => note.replace(/^pipeline 100 \(.*\): /, ''))).toEqual([
      'the pipeline is created',
      'the pipeline is pending',
      'the pipeline waits for a person to start a manual job',
      'the pipeline is running',
    ]);
    const variables = Object.fromEntries(gitlab.pipelines[0]?.variables.map(({ key, value }) => [key, value]) ?? []);
    expect(variables).toEqual({
      ...keyOf(1),
      REGION: 'eu',
      BERTH_SPARE_NAME: 'web',
      BERTH_SPARE_PROJECT: 'default',
      BERTH_SPARE_POOL: 'edge',
      BERTH_SPARE_HOST: 'rack1',
      BERTH_SPARE_ADDRESS: '10.0.0.1',
      BERTH_SPARE_CPUS: '4',
      BERTH_SPARE_MEMORY_MIB: '1024',
      BERTH_SPARE_DISK_GIB: '20',
      BERTH_VAR_PATH: '/evil',
    });
  });

  it.each(['failed', 'canceled', 'skipped'])('has failed when its pipeline is %s', async (status) => {
    const outcome = await provisionerOf({}, passing(status)).provision(testWork('spare_1'), testRun());
    expect(outcome).toEqual({ is: 'failed', why: expect.stringMatching(new RegExp(`^pipeline 100 .* is ${status}$`)) });
  });

  it('has failed when its pipeline waits for a person for too long', async () => {
    const outcome = await provisionerOf({}, passing('manual')).provision(testWork('spare_1'), testRun());
    expect(outcome).toEqual({ is: 'failed', why: expect.stringContaining('has not ended within 100 s') });
  });

  it('is searched before a second trigger', async () => {
    gitlab.add(keyOf(1), 'failed');
    gitlab.add(keyOf(2), 'success');
    const work = testWork('spare_1', { attempt: 2 });
    expect(await provisionerOf().provision(work, testRun({ resumed: true }))).toEqual({ is: 'done' });
    expect(triggers()).toBe(0);
    expect(gitlab.requests[0]).toContain('updated_after=2026-11-20T09%3A00%3A00.000Z');
  });

  it('is triggered when the search finds none', async () => {
    gitlab.add(keyOf(1), 'failed');
    const work = testWork('spare_1', { attempt: 2 });
    const run = testRun({ resumed: true });
    expect(await provisionerOf({}, passing('success')).provision(work, run)).toEqual({ is: 'done' });
    expect(triggers()).toBe(1);
  });

  it('has one pipeline although the answer of the trigger was lost', async () => {
    gitlab.faults.set('POST', 'drop');
    expect(await provisionerOf({}, passing('success')).provision(testWork('spare_1'), testRun())).toEqual({
      is: 'done',
    });
    expect(gitlab.pipelines).toHaveLength(1);
  });

  it('outlives errors of GitLab while it is followed', async () => {
    gitlab.faults.set('GET /pipelines/100', { status: 502 });
    expect(await provisionerOf({}, passing('success')).provision(testWork('spare_1'), testRun())).toEqual({
      is: 'done',
    });
  });
});

describe('what becomes of a spare when GitLab', () => {
  it.each<[string, boolean, string, Fault, object]>([
    ['refuses the trigger', false, 'POST', { status: 403 }, { is: 'failed', refused: true }],
    ['has too many requests', false, 'POST', { status: 429 }, { is: 'failed' }],
    ['breaks, and has no pipeline', false, 'POST', { status: 500 }, { is: 'failed' }],
    ['does not let it be searched', true, 'GET /pipelines', { status: 403 }, { is: 'unknown' }],
    ['has lost the pipeline', false, 'GET /pipelines/100', { status: 404 }, { is: 'unknown' }],
  ])('%s', async (_, resumed, request, fault, expected) => {
    gitlab.faults.set(request, fault);
    const outcome = await provisionerOf().provision(testWork('spare_1'), testRun({ resumed }));
    expect(outcome).toEqual({ why: expect.any(String), ...expected });
    expect(JSON.stringify(outcome)).not.toMatch(/glptt|glpat/);
  });

  it('is not there: it has failed, or is unknown when it may have begun', async () => {
    const gone = { url: 'http://127.0.0.1:1' };
    expect(await provisionerOf(gone).provision(testWork('spare_1'), testRun())).toMatchObject({ is: 'failed' });
    const resumed = testRun({ resumed: true });
    expect(await provisionerOf(gone).provision(testWork('spare_1'), resumed)).toMatchObject({
      is: 'unknown',
      why: expect.stringContaining('a pipeline may run, and it cannot be searched'),
    });
  });

  it('needs a token that is missing', async () => {
    const why = 'provisioners.p.gitlab.apiTokenFile of the server cannot be used';
    const provisioner = provisionerOf({ apiTokenFile: join(folder, 'missing') });
    expect(await provisioner.provision(testWork('spare_1'), testRun())).toEqual({ is: 'failed', why });
    const resumed = testRun({ resumed: true });
    expect(await provisioner.provision(testWork('spare_1'), resumed)).toEqual({ is: 'unknown', why });
  });

  it('is left when this server stops', async () => {
    const stop = new AbortController();
    const waits = new TestWaits();
    waits.onWait = () => stop.abort();
    const provisioning = provisionerOf({}, waits).provision(testWork('spare_1'), testRun({ signal: stop.signal }));
    await expect(provisioning).rejects.toThrow('it was stopped');
    expect(gitlab.pipelines).toHaveLength(1);
  });
});

describe('a release', () => {
  it('does nothing unless it is configured', async () => {
    expect(await provisionerOf().release(testWork('spare_1'), testRun())).toEqual({ is: 'done' });
    expect(gitlab.requests).toEqual([]);
  });

  it('is a pipeline of its own', async () => {
    gitlab.add(keyOf(1), 'success');
    const provisioner = provisionerOf({ release: 'trigger' }, passing('success'));
    expect(await provisioner.release(testWork('spare_1'), testRun({ resumed: true }))).toEqual({ is: 'done' });
    expect(gitlab.pipelines[1]?.variables).toContainEqual({ key: 'BERTH_SPARE_ACTION', value: 'release' });
  });

  it('that fails says so', async () => {
    const provisioner = provisionerOf({ release: 'trigger' }, passing('failed'));
    expect(await provisioner.release(testWork('spare_1'), testRun())).toMatchObject({ is: 'failed' });
  });
});
