import { expect, it } from 'vitest';
import type { Job } from '../../../src/api/resources/job.ts';
import { durationsByLabel, keptMax } from './durations.ts';

const job = (name: string, label: string | undefined, ms: number | undefined, phase = 'Succeeded'): Job =>
  ({
    metadata: { name, project: 'p' },
    spec: label === undefined ? { image: 'tiny' } : { label },
    status: { phase, ...(ms === undefined ? {} : { startedAtMs: 1_000, endedAtMs: 1_000 + ms }) },
  }) as unknown as Job;

it('has median and 95th percentile by label, of jobs that ran and ended', () => {
  const jobs = [
    job('a', 'big', 30),
    job('b', 'big', 10),
    job('c', 'big', 20, 'Failed'),
    job('d', undefined, 5),
    job('e', 'big', 99, 'Running'),
    job('f', 'big', undefined, 'Cancelled'),
  ];
  expect(durationsByLabel(jobs)).toMatchObject([
    { label: 'big', count: 3, failed: 1, medianMs: 20, p95Ms: 30, ran: [{ ms: 10 }, { ms: 20 }, { ms: 30 }] },
    { label: 'tiny', count: 1, failed: 0, medianMs: 5, p95Ms: 5 },
  ]);
});

it('counts all, and keeps the newest', () => {
  const jobs = Array.from({ length: 200 }, (_, i) => job(`j${i}`, 'x', i + 1));
  const [of] = durationsByLabel(jobs);
  expect([of?.count, of?.ran.length, of?.ran.at(-1)?.name, of?.p95Ms]).toEqual([200, keptMax, 'j199', 190]);
});
