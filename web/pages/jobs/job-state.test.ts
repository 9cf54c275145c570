import { describe, expect, it } from 'vitest';
import type { Job, JobAttempt } from '../../../src/api/resources/job.ts';
import { attemptText, bytesText, hasEnded, ranMs, reasonOf } from './job-state.ts';

const job = (status: object): Job => ({ spec: {}, status }) as unknown as Job;

describe('a job', () => {
  it.each([
    [{ phase: 'Queued', queuePosition: 3 }, 'number 3 in the queue'],
    [{ phase: 'Queued', queuePosition: 1, estimatedStartMs: 61_000 }, 'number 1 in the queue; starts in about 1 min'],
    [{ phase: 'Queued', queuePosition: 1, estimatedStartMs: 500 }, 'number 1 in the queue'],
    [{ phase: 'Failed', exitCode: 3, message: 'it failed' }, 'exit code 3; it failed'],
    [{ phase: 'Succeeded', exitCode: 0, message: 'done' }, ''],
    [{ phase: 'Running', cancel: {} }, 'being cancelled'],
    [{ phase: 'Cancelled', cancel: {}, message: 'by a user' }, 'by a user'],
  ])('%j: "%s"', (status, text) => {
    expect(reasonOf(job(status), 1_000)).toBe(text);
  });

  it.each([
    ['Succeeded', true],
    ['TimedOut', true],
    ['Finishing', false],
  ])('that is %s has ended: %s', (phase, ended) => {
    expect(hasEnded(job({ phase }))).toBe(ended);
  });

  it('runs until its end, or until now', () => {
    expect([{}, { startedAtMs: 1 }, { startedAtMs: 1, endedAtMs: 4 }].map((status) => ranMs(job(status), 10))).toEqual([
      undefined,
      9,
      3,
    ]);
  });
});

it.each([
  [{}, 'under way'],
  [{ outcome: 'failure', exitCode: 2, message: 'x' }, 'failure, exit code 2'],
  [{ outcome: 'infrastructure', message: 'the host is gone' }, 'infrastructure: the host is gone'],
])('an attempt %j: "%s"', (attempt, text) => {
  expect(attemptText(attempt as JobAttempt)).toBe(text);
});

it.each([
  [12, '12 B'],
  [1536, '1.5 KiB'],
  [5 * 1024 ** 2, '5.0 MiB'],
])('%i bytes are %s', (bytes, text) => expect(bytesText(bytes)).toBe(text));
