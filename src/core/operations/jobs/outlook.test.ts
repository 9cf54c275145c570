import { describe, expect, it } from 'vitest';
import type { Job } from '../../../api/resources/job.ts';
import { testCache, testContext, testJob } from '../../testing.ts';
import { type JobOutlook, jobOutlooks } from './outlook.ts';

const nowMs = 1_000_000;

/** Jobs of the label `tiny` that took 10 s, 20 s, ... */
function ended(count: number): Job[] {
  return Array.from({ length: count }, (_, i) =>
    testJob(`done-${i}`, {}, { phase: 'Succeeded', startedAtMs: 0, endedAtMs: (i + 1) * 10_000 }),
  );
}

const waits = (name: string, createdAtMs: number, spec: Partial<Job['spec']> = {}) =>
  testJob(name, spec, { phase: 'Queued' }, { createdAtMs });
const runs = (name: string, forMs: number) => testJob(name, {}, { phase: 'Running', startedAtMs: nowMs - forMs });

function outlookOf(wanted: Job, others: readonly Job[], maxConcurrency?: number) {
  const policy = maxConcurrency === undefined ? {} : { maxConcurrency };
  return jobOutlooks(testCache([...others, wanted]), testContext({ nowMs, policy }))(wanted);
}

describe('the outlook of a job', () => {
  it.each<[string, Job, readonly Job[], number | undefined, JobOutlook]>([
    ['is nothing once it is placed', runs('a', 0), ended(5), 1, {}],
    [
      'is its place only while too little is known',
      waits('a', 1),
      ended(4).concat(waits('b', 0)),
      1,
      { queuePosition: 2 },
    ],
    ['is now when a place is free', waits('a', 1), ended(5), 1, { queuePosition: 1, estimatedStartMs: nowMs }],
    // The longer ones took 20, 30, 40 and 50 s: 35 s on average, of which 10 s are over.
    [
      'is when a place becomes free',
      waits('a', 1),
      [...ended(5), runs('r', 10_000)],
      1,
      { queuePosition: 1, estimatedStartMs: nowMs + 25_000 },
    ],
    // The job ahead takes the median, 30 s.
    [
      'counts those ahead',
      waits('a', 1),
      [...ended(5), waits('b', 0)],
      1,
      { queuePosition: 2, estimatedStartMs: nowMs + 30_000 },
    ],
    [
      'uses as many places as there are',
      waits('a', 1),
      [...ended(5), waits('b', 0)],
      2,
      { queuePosition: 2, estimatedStartMs: nowMs },
    ],
    [
      'follows priorities',
      waits('a', 1, { priority: 5 }),
      [...ended(5), waits('b', 0)],
      1,
      { queuePosition: 1, estimatedStartMs: nowMs },
    ],
    [
      'is unknown when one runs longer than all before',
      waits('a', 1),
      [...ended(5), runs('r', 60_000)],
      1,
      { queuePosition: 1 },
    ],
    [
      'is unknown for another label',
      waits('a', 1),
      [...ended(5), waits('b', 0, { label: 'big' })],
      1,
      { queuePosition: 2 },
    ],
    ['is unknown while no place is known', waits('a', 1), ended(5), undefined, { queuePosition: 1 }],
  ])('%s', (_, wanted, others, max, outlook) => expect(outlookOf(wanted, others, max)).toEqual(outlook));

  it('is the same whichever other jobs are asked about before', () => {
    const waiting = Array.from({ length: 7 }, (_, i) => waits(`w-${i}`, i));
    const jobs = [...ended(9), runs('r', 10_000), ...waiting];
    const ctx = testContext({ nowMs, policy: { maxConcurrency: 2 } });
    const each = waiting.map((job) => jobOutlooks(testCache(jobs), ctx)(job));
    const all = jobOutlooks(testCache(jobs), ctx);
    for (const at of [3, 6, 0, 3, 1]) expect(all(waiting[at] ?? runs('none', 0))).toEqual(each[at]);
    expect(each.map(({ queuePosition }) => queuePosition)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });
});
