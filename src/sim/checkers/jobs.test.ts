import { describe, expect, it } from 'vitest';
import type { Instance } from '../../api/resources/instance.ts';
import type { Job, JobAttempt } from '../../api/resources/job.ts';
import { testInstance, testJob } from '../../core/testing.ts';
import { testHistory } from '../test-history.ts';
import { jobsChecker } from './jobs.ts';

const labels = { 'berth/job': 'a' };
const instance = testInstance('a-1', {}, { phase: 'Running', host: 'h1' }, { labels });
const attempt: JobAttempt = { number: 1, instance: 'a-1', instanceId: instance.metadata.id, createdAtMs: 0 };
const over: JobAttempt = { ...attempt, outcome: 'succeeded', endedAtMs: 1 };

function jobWith(
  phase: Job['status']['phase'],
  attempts: readonly JobAttempt[],
  more: Partial<Job['status']> = {},
): Job {
  return testJob('a', {}, { phase, attempt: attempts.length, attempts: [...attempts], ...more });
}

const deleting = { ...instance, metadata: { ...instance.metadata, deletionRequestedAtMs: 1 } };

describe('a job in the history', () => {
  it('may run and end with its instance', () => {
    const { commit } = testHistory(jobsChecker);
    expect(commit(jobWith('Running', [attempt]), instance)).toBeUndefined();
    expect(commit(jobWith('Succeeded', [over]), deleting)).toBeUndefined();
  });

  it.each<[string, readonly (readonly (Job | Instance)[])[], string]>([
    ['ends twice', [[jobWith('Succeeded', [over])], [jobWith('Failed', [over])]], 'job a was Succeeded and is Failed'],
    [
      'changes a verdict',
      [[jobWith('Queued', [over])], [jobWith('Queued', [{ ...over, outcome: 'failure' }])]],
      'the verdict on attempt 1 of job a has changed',
    ],
    [
      'has two attempts at once',
      [[jobWith('Running', [attempt, { ...attempt, number: 2, instanceId: 'other' }])]],
      'job a has two attempts at once',
    ],
    [
      'takes an instance twice',
      [[jobWith('Running', [over, { ...attempt, number: 2 }])]],
      'two attempts of job a have one instance',
    ],
    ['loses an attempt', [[jobWith('Running', [attempt], { attempt: 2 })]], 'job a is at attempt 2 and lists 1'],
    [
      'has its instance removed too early',
      [[jobWith('Running', [attempt]), instance], [deleting]],
      'instance a-1 was removed while attempt 1 of job a went on',
    ],
  ])('is at fault when it %s', (_, commits, fault) => {
    const { commit } = testHistory(jobsChecker);
    expect(commits.map((records) => commit(...records)).at(-1)).toBe(fault);
  });
});

describe('a job at rest', () => {
  it.each<[string, readonly (Job | Instance)[], string | undefined]>([
    ['has ended', [jobWith('Succeeded', [over])], undefined],
    ['is held', [jobWith('Failed', [over], { heldUntilMs: 9 }), instance], undefined],
    [
      'waits with its instance',
      [jobWith('Queued', [attempt]), { ...instance, status: { ...instance.status, phase: 'Pending' } }],
      undefined,
    ],
    ['waits with a reason', [jobWith('Queued', [], { reason: 'QuotaExceeded' })], undefined],
    ['does not run', [jobWith('Running', [attempt]), instance], 'job a stays Running in attempt 1'],
    [
      'leaves no instance',
      [jobWith('Succeeded', [over]), instance],
      'job a has ended, and its instance is still there',
    ],
    ['does not wait silently', [jobWith('Queued', [])], 'job a waits without saying why'],
  ])('%s', (_, records, fault) => {
    const { commit, unrest } = testHistory(jobsChecker);
    commit(...records);
    expect(unrest()).toEqual(fault === undefined ? [] : [fault]);
  });

  it('may wait for a host that is gone since a restore', () => {
    const conditions = [
      { type: 'Running', status: 'Unknown' as const, reason: 'Restored', message: 'not told of yet', sinceMs: 0 },
    ];
    const { commit, unrest, dead } = testHistory(jobsChecker);
    commit(jobWith('Placing', [attempt]), { ...instance, status: { ...instance.status, conditions } });
    expect(unrest()).toEqual(['job a stays Placing in attempt 1']);
    dead.add('h1');
    expect(unrest()).toEqual([]);
  });
});
