import { describe, expect, it } from 'vitest';
import type { Job, JobRequestOrigin, JobSpec, JobStatus } from '../../../api/resources/job.ts';
import { defaultPolicy } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { commitPlan, testCache } from '../../testing.ts';
import { isResultDue, jobResult, recordDelivery } from './job-result.ts';

const nowMs = Date.parse('2026-11-26T03:10:20.000Z');
const ctx = { nowMs, policy: defaultPolicy };

const request: JobRequestOrigin = {
  requestId: '0b2a1f64-6a5e-4a53-9f0a-6f6f5e1d2c3b',
  source: 'github',
  submittedAt: '2026-11-26T03:00:00Z',
  digest: 'd',
};

function job(status: Partial<JobStatus>, spec: Partial<JobSpec> = { request }): Job {
  return {
    kind: 'job',
    schemaVersion,
    metadata: {
      id: 'job_1',
      name: 'req-1',
      project: 'ci',
      revision: 7,
      generation: 1,
      labels: {},
      createdAtMs: nowMs - 10_000,
    },
    spec: {
      repo: { url: 'http://git.test/app.git', commit: 'a'.repeat(40) },
      env: {},
      artifacts: [],
      sshKeys: [],
      timeoutMs: 3_600_000,
      retries: { max: 2, on: ['infrastructure'] },
      holdOnFailureMs: 0,
      ...spec,
    },
    status: { phase: 'Queued', attempt: 1, attempts: [], ...status },
  };
}

const bodyOf = (of: Job, more = {}): unknown => JSON.parse(jobResult(of, { ...ctx, ...more })?.body ?? 'null');

describe('the result of a job', () => {
  it('has every field of jobresult.v1', () => {
    const ended = job({ phase: 'Succeeded', exitCode: 0, startedAtMs: nowMs - 5_000, endedAtMs: nowMs - 1_000 });
    expect(bodyOf(ended)).toEqual({
      schema_version: 'jobresult.v1',
      request_id: request.requestId,
      job_id: 'job_1',
      repo_url: 'http://git.test/app.git',
      commit_sha: 'a'.repeat(40),
      success: true,
      status: 'succeeded',
      exit_code: 0,
      summary: 'exit code 0, 1 attempt',
      submitted_at: '2026-11-26T03:00:00Z',
      started_at: '2026-11-26T03:10:15.000Z',
      completed_at: '2026-11-26T03:10:19.000Z',
      log_url: '/v1/jobs/req-1/log?project=ci',
    });
  });

  it.each([
    ['a program that fails', { phase: 'Failed', exitCode: 3, reason: 'ExitCode' }, 'failed', 3, 'ExitCode'],
    [
      'a lost host',
      { phase: 'Failed', reason: 'HostLost', message: 'host a is lost' },
      'failed',
      null,
      'HostLost: host a is lost',
    ],
    ['a cancelled one that never began', { phase: 'Cancelled', attempt: 0 }, 'cancelled', null, 'Cancelled'],
    ['one whose time was over', { phase: 'TimedOut', exitCode: 143 }, 'timed_out', 143, 'TimedOut'],
  ] as const)('tells of %s', (_name, status, word, exitCode, error) => {
    expect(bodyOf(job(status))).toMatchObject({ success: false, status: word, exit_code: exitCode, error });
  });

  it('has null for what never was', () => {
    expect(bodyOf(job({ phase: 'Cancelled', attempt: 0 }))).toMatchObject({
      started_at: null,
      completed_at: '2026-11-26T03:10:20.000Z',
      summary: '0 attempts',
    });
  });

  it('links to the server where it is known', () => {
    const policy = { ...defaultPolicy, publicUrl: 'https://berth.test' };
    expect(bodyOf(job({ phase: 'Succeeded' }), { policy })).toMatchObject({
      log_url: 'https://berth.test/v1/jobs/req-1/log?project=ci',
    });
  });

  it('goes to reply_to only if the message had one', () => {
    const asked = (of: JobRequestOrigin) => jobResult(job({ phase: 'Succeeded' }, { request: of }), ctx);
    expect(asked(request)).toMatchObject({ messageId: 'jobresult.job_1', exchange: 'waiting' });
    expect(asked(request)).not.toHaveProperty('reply');
    expect(asked({ ...request, replyTo: 'answers' })).toMatchObject({ exchange: 'waiting', reply: 'waiting' });
  });

  it('is made once', () => {
    const first = jobResult(job({ phase: 'Succeeded' }), ctx);
    const later = job({ phase: 'Succeeded', message: 'changed', ...(first ? { result: first } : {}) });
    expect(jobResult(later, { ...ctx, nowMs: nowMs + 1_000 })).toBe(first);
  });

  it('is only for jobs that a message asked for, and that have ended', () => {
    expect(jobResult(job({ phase: 'Succeeded' }, {}), ctx)).toBeUndefined();
    expect(jobResult(job({ phase: 'Running' }), ctx)).toBeUndefined();
  });
});

describe('what became of a result', () => {
  const key = keys.job('ci', 'req-1');
  const result = { messageId: 'm', body: '{}', exchange: 'waiting', reply: 'waiting' } as const;

  it.each([
    [
      'confirmed at both',
      { exchange: 'confirmed', reply: 'confirmed' },
      { exchange: 'confirmed', reply: 'confirmed' },
      false,
    ],
    ['confirmed at one', { exchange: 'confirmed' }, { exchange: 'confirmed', reply: 'waiting' }, true],
    [
      'unrouted, and dropped',
      { exchange: 'unrouted', reply: 'dropped' },
      { exchange: 'unrouted', reply: 'dropped' },
      true,
    ],
  ] as const)('is recorded: %s', (_name, delivered, expected, due) => {
    const cache = testCache([job({ phase: 'Succeeded', result })]);
    commitPlan(cache, recordDelivery(cache, { project: 'ci', name: 'req-1', messageId: 'm', ...delivered }).plan);
    const recorded = cache.get('job', key)?.value.status.result;
    expect(recorded).toEqual({ ...result, ...expected });
    expect(recorded && isResultDue(recorded)).toBe(due);
  });

  it('does not undo a confirm', () => {
    const confirmed = { ...result, exchange: 'confirmed', reply: 'confirmed' } as const;
    const cache = testCache([job({ phase: 'Succeeded', result: confirmed })]);
    const late = { project: 'ci', name: 'req-1', messageId: 'm', exchange: 'unrouted', reply: 'dropped' } as const;
    expect(recordDelivery(cache, late).plan.changes).toEqual([]);
  });

  it('is of no other result, and of no job that is gone', () => {
    const cache = testCache([job({ phase: 'Succeeded', result })]);
    const other = { project: 'ci', name: 'req-1', messageId: 'other', exchange: 'confirmed' } as const;
    expect(recordDelivery(cache, other).plan.changes).toEqual([]);
    expect(recordDelivery(cache, { ...other, name: 'req-2' }).plan.changes).toEqual([]);
  });
});
