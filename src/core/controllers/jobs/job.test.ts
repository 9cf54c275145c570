import { describe, expect, it } from 'vitest';
import type { InstanceStatus } from '../../../api/resources/instance.ts';
import type { JobSpec } from '../../../api/resources/job.ts';
import type { RunStatus } from '../../../api/resources/run.ts';
import { cancelJob, createJob, deleteJob, retryJob } from '../../operations/jobs/job.ts';
import { keys } from '../../state/keys.ts';
import type { Cache } from '../../state/cache.ts';
import {
  commitPlan,
  testCache,
  testContext,
  testGuest,
  testHost,
  testImage,
  testJob,
  testProject,
} from '../../testing.ts';
import { job } from './job.ts';

const key = keys.job('default', 'a');

class Jobs {
  readonly cache: Cache;
  nowMs = 1_000_000;
  readonly #ctx = testContext();

  constructor(...records: Parameters<typeof testCache>[0]) {
    this.cache = testCache([testImage(), ...testHost('h1'), ...records]);
  }

  get #context() {
    return { ...this.#ctx, nowMs: this.nowMs };
  }

  create(name: string, spec: Partial<JobSpec> = {}) {
    const input = { project: 'default', name, labels: {}, spec: { ...testJob(name).spec, ...spec } };
    commitPlan(this.cache, createJob(this.cache, input, this.#context).plan);
    return this;
  }

  run(at = key) {
    commitPlan(this.cache, job.reconcile(this.cache, at, this.#context));
    return this;
  }

  cancel() {
    commitPlan(this.cache, cancelJob(this.cache, { project: 'default', name: 'a' }, this.#context).plan);
    return this;
  }

  remove() {
    commitPlan(this.cache, deleteJob(this.cache, { project: 'default', name: 'a' }, this.#context).plan);
    return this;
  }

  retry() {
    const { plan, key: made } = retryJob(this.cache, { project: 'default', name: 'a' }, this.#context);
    commitPlan(this.cache, plan);
    return this.cache.get('job', made)?.value;
  }

  /** The status of the instance of the current attempt, as its host reports it. */
  instanceIs(phase: InstanceStatus['phase'], run?: RunStatus, host = 'h1') {
    const entry = this.#instanceEntry();
    const guest = testGuest(run === undefined ? {} : { run });
    const value = { ...entry.value, status: { ...entry.value.status, phase, host, guest, runningAtMs: this.nowMs } };
    commitPlan(this.cache, { changes: [{ key: entry.key, ifRevision: entry.revision, value }] });
    return this;
  }

  instanceGoes() {
    const entry = this.#instanceEntry();
    commitPlan(this.cache, { changes: [{ key: entry.key, ifRevision: entry.revision, value: null }] });
    return this;
  }

  #instanceEntry() {
    const name = this.cache.get('job', key)?.value.status.attempts.at(-1)?.instance ?? '';
    const entry = this.cache.get('instance', keys.instance('default', name));
    if (!entry) throw new Error(`there is no instance "${name}"`);
    return entry;
  }

  get instance() {
    return this.#instanceEntry().value;
  }

  get job() {
    return this.cache.get('job', key)?.value;
  }

  get status() {
    return this.job?.status;
  }
}

const exited = (exitCode: number): RunStatus => ({ state: 'ended', outcome: 'exited', exitCode, logBytes: 42 });

describe('a job', () => {
  it('gets a fresh instance with its program', () => {
    const jobs = new Jobs().create('a', { script: 'make', cpus: 2, timeoutMs: 5_000 }).run();
    expect(jobs.instance).toMatchObject({
      metadata: { name: 'a-1', labels: { 'berth/job': 'a', 'runs-on': 'tiny' } },
      spec: { image: 'tiny', cpus: 2, restartPolicy: 'Never', run: { script: 'make', timeLimitMs: 5_000 } },
    });
    expect(jobs.status).toMatchObject({ phase: 'Queued', attempt: 1, instance: 'a-1' });
    expect(jobs.run().status?.attempts).toHaveLength(1);
  });

  it('shows what its instance does, and ends together with it', () => {
    const jobs = new Jobs().create('a').run();
    expect(jobs.instanceIs('Scheduled').run().status?.phase).toBe('Placing');
    expect(jobs.instanceIs('Starting').run().status?.phase).toBe('Booting');
    expect(jobs.instanceIs('Running', { state: 'running' }).run().status).toMatchObject({
      phase: 'Running',
      startedAtMs: 1_000_000,
      attempts: [{ host: 'h1' }],
    });
    jobs.instanceIs('Running', exited(0)).run();
    expect(jobs.status).toMatchObject({
      phase: 'Succeeded',
      exitCode: 0,
      logBytes: 42,
      attempts: [{ number: 1, outcome: 'succeeded', exitCode: 0 }],
    });
    expect(jobs.instance.metadata.deletionRequestedAtMs).toBe(1_000_000);
  });

  it('that a message asked for has its result from the commit of its end on', () => {
    const request = {
      requestId: 'r1',
      source: 'manual',
      submittedAt: '2026-01-01T00:00:00Z',
      digest: 'd',
      replyTo: 'q',
    };
    const jobs = new Jobs().create('a', { request }).run().instanceIs('Running', exited(0));
    expect(jobs.status?.result).toBeUndefined();
    expect(jobs.run().status?.result).toMatchObject({ exchange: 'waiting', reply: 'waiting' });
    expect(JSON.parse(jobs.status?.result?.body ?? '')).toMatchObject({
      request_id: 'r1',
      success: true,
      exit_code: 0,
    });
  });

  it('fails with the exit code, without another attempt', () => {
    const jobs = new Jobs().create('a').run().instanceIs('Running', exited(3)).run();
    expect(jobs.status).toMatchObject({ phase: 'Failed', exitCode: 3, reason: 'ExitCode' });
  });

  it('tries again elsewhere what was not its fault, then gives up', () => {
    const jobs = new Jobs(...testHost('h2')).create('a').run();
    const lost: RunStatus = { state: 'ended', outcome: 'lost', reason: 'GuestEnded', message: 'it died' };
    jobs.instanceIs('Failed', lost).run();
    expect(jobs.status).toMatchObject({
      phase: 'Queued',
      retryAtMs: 1_001_000,
      message: 'attempt 1: it died; another follows',
    });
    expect(jobs.run().status?.attempts).toHaveLength(1);
    jobs.nowMs += 1_000;
    jobs.run();
    expect(jobs.instance).toMatchObject({ metadata: { name: 'a-2' }, spec: { placement: { avoidHosts: ['h1'] } } });
    jobs.instanceIs('Failed', lost, 'h2').run();
    jobs.nowMs += 5_000;
    jobs.run().instanceIs('Failed', lost).run();
    expect(jobs.status).toMatchObject({ phase: 'Failed', reason: 'GuestEnded', attempt: 3 });
  });

  it('tries a failed program again when it should', () => {
    const jobs = new Jobs().create('a', { retries: { max: 1, on: ['failure'] } });
    jobs.run().instanceIs('Running', exited(1)).run();
    expect(jobs.status).toMatchObject({ phase: 'Queued', attempts: [{ outcome: 'failure', exitCode: 1 }] });
    jobs.nowMs += 1_000;
    jobs.run().instanceIs('Running', exited(0)).run();
    expect(jobs.status).toMatchObject({ phase: 'Succeeded', attempt: 2 });
  });

  it('waits for its quota without a refusal', () => {
    const jobs = new Jobs(testProject('default', { quota: { INSTANCES: 1 } })).create('a').create('b');
    jobs.run(keys.job('default', 'b')).run();
    expect(jobs.status).toMatchObject({ phase: 'Queued', attempt: 0, reason: 'QuotaExceeded' });
  });

  it('fails when its image is gone', () => {
    const jobs = new Jobs().create('a');
    const image = jobs.cache.get('image', keys.image('tiny'));
    commitPlan(jobs.cache, { changes: [{ key: keys.image('tiny'), ifRevision: image?.revision ?? 0, value: null }] });
    expect(jobs.run().status).toMatchObject({ phase: 'Failed', reason: 'InvalidRequest' });
  });

  it('keeps the instance of a failed program for a look inside', () => {
    const jobs = new Jobs().create('a', { holdOnFailureMs: 60_000 }).run().instanceIs('Running', exited(1)).run();
    expect(jobs.status).toMatchObject({ phase: 'Failed', heldUntilMs: 1_060_000 });
    expect(jobs.run().instance.metadata.deletionRequestedAtMs).toBeUndefined();
    jobs.nowMs = 1_060_000;
    expect(jobs.run().instance.metadata.deletionRequestedAtMs).toBe(1_060_000);
    expect(jobs.status?.heldUntilMs).toBeUndefined();
  });

  it('is gone when it is old, and when it is deleted, but not before its instance', () => {
    const jobs = new Jobs().create('a').run().instanceIs('Running', exited(0)).run();
    jobs.nowMs += 8 * 24 * 3_600_000;
    expect(jobs.run().job).toBeDefined();
    expect(jobs.instanceGoes().run().job).toBeUndefined();
    const other = new Jobs().create('a').run().instanceIs('Running', exited(0)).run().instanceGoes();
    expect(other.remove().run().job).toBeUndefined();
  });

  it('that is deleted while it runs is cancelled first', () => {
    const jobs = new Jobs().create('a').run().instanceIs('Running', { state: 'running' }).run().remove().run();
    expect(jobs.instance.spec.powerState).toBe('stopped');
    jobs.instanceIs('Stopping', { state: 'ended', outcome: 'cancelled', exitCode: 143 }).run();
    expect(jobs.status).toMatchObject({ phase: 'Cancelled', exitCode: 143 });
    expect(jobs.instanceGoes().run().job).toBeUndefined();
  });
});

describe('cancelling', () => {
  it('ends a job that has no instance yet', () => {
    expect(new Jobs().create('a').cancel().run().status).toMatchObject({
      phase: 'Cancelled',
      reason: 'CancelRequested',
    });
  });
  it('removes an instance that has not begun', () => {
    const jobs = new Jobs().create('a').run().cancel().run();
    expect(jobs.status?.phase).toBe('Cancelled');
    expect(jobs.instance.metadata.deletionRequestedAtMs).toBeDefined();
  });
  it('is no retry', () => {
    const jobs = new Jobs().create('a').run().instanceIs('Running', { state: 'running' }).run().cancel().run();
    jobs.instanceIs('Failed', { state: 'ended', outcome: 'lost' }).run();
    expect(jobs.status).toMatchObject({ phase: 'Cancelled', attempt: 1 });
  });
  it('twice is once, and too late is refused', () => {
    const jobs = new Jobs().create('a').cancel().cancel().run();
    expect(jobs.cancel().status?.phase).toBe('Cancelled');
    const done = new Jobs().create('a').run().instanceIs('Running', exited(0)).run();
    expect(() => done.cancel()).toThrow('job "a" has ended already: Succeeded');
  });
});

describe('a newer job with the same key', () => {
  it('cancels the older ones that have not ended', () => {
    const jobs = new Jobs().create('a', { supersedes: 'main' }).create('b', { supersedes: 'main' });
    expect(jobs.status?.cancel).toMatchObject({ reason: 'Superseded', message: 'job "b" supersedes it' });
    expect(
      jobs.create('c', { supersedes: 'other' }).cache.get('job', keys.job('default', 'b'))?.value.status.cancel,
    ).toBeUndefined();
  });
});

describe('retrying', () => {
  it('creates a new job with the same spec, and no second result', () => {
    const request = { requestId: 'x', source: 'manual', submittedAt: '', digest: '' };
    const jobs = new Jobs().create('a', { request }).run();
    expect(() => jobs.retry()).toThrow('job "a" has not ended');
    jobs.instanceIs('Running', exited(1)).run();
    expect(jobs.retry()).toMatchObject({
      metadata: { name: 'a-r2', labels: { 'berth/retry-of': 'a' } },
      spec: { script: 'true' },
    });
    expect(jobs.retry()).toMatchObject({ metadata: { name: 'a-r3' } });
    expect(jobs.retry()?.spec.request).toBeUndefined();
  });
});

describe('many jobs', () => {
  it('are deleted beyond their maximum, the oldest first, and never one that has not ended', () => {
    const ended = (name: string, endedAtMs: number) => testJob(name, {}, { phase: 'Succeeded', endedAtMs });
    const cache = testCache([ended('new', 3), ended('old', 1), ended('middle', 2), testJob('a')]);
    commitPlan(cache, job.reconcile(cache, 'jobs/', testContext({ policy: { jobsMax: 2 } })));
    expect([...cache.list('job')].map(({ value }) => value.metadata.name).sort()).toEqual(['a', 'new']);
  });
});
