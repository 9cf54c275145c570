// Job templates over days: which jobs a schedule creates, and what requests may set.

import { describe, expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import { JobTemplateSpec } from '../../../api/resources/job-template.ts';
import {
  createJobTemplate,
  deleteJobTemplate,
  replaceJobTemplate,
} from '../../operations/job-templates/job-template.ts';
import { type RunInput, runJobTemplate } from '../../operations/job-templates/run.ts';
import { restoredRecord } from '../../operations/restored-record.ts';
import type { Cache } from '../../state/cache.ts';
import { keys } from '../../state/keys.ts';
import { commitPlan, testCache, testContext, testImage } from '../../testing.ts';
import { jobTemplate } from './job-template.ts';

const minute = 60_000;
const hour = 60 * minute;
const key = keys.jobTemplate('default', 'nightly');
const bornMs = Date.parse('2026-11-26T12:00Z');
let ids = 0;
const at = (nowMs: number) => testContext({ nowMs, newId: (prefix) => `${prefix}_${++ids}` });

const specOf = (spec: object = {}, job: object = {}) =>
  parse(
    JobTemplateSpec,
    { template: { labels: { team: 'web' }, spec: { label: 'tiny', script: 'true', ...job } }, ...spec },
    'spec',
  );

const inputOf = (spec: object, job: object = {}) => ({
  ...{ project: 'default', name: 'nightly', labels: {} },
  spec: specOf(spec, job),
});

function make(spec: object, job: object = {}): Cache {
  const cache = testCache([testImage()]);
  commitPlan(cache, createJobTemplate(cache, inputOf(spec, job), at(bornMs)).plan);
  return cache;
}

const daily = { schedule: { cron: '0 3 * * *' } };

/** From now on, at the times that the controller asks for. */
function pass(cache: Cache, fromMs: number, untilMs: number): void {
  for (let nowMs = fromMs, turns = 0; nowMs <= untilMs; turns++) {
    if (turns > 1_000) throw new Error('the controller asks for no time to come');
    const plan = jobTemplate.reconcile(cache, key, at(nowMs));
    commitPlan(cache, plan);
    if (plan.changes.length === 0) nowMs += plan.requeueAfterMs ?? Number.POSITIVE_INFINITY;
  }
}

const jobsOf = (cache: Cache): string[] => [...cache.list('job')].map(({ value }) => value.metadata.name).sort();
const statusOf = (cache: Cache) => cache.get('jobTemplate', key)?.value.status;
const told = (cache: Cache): string[] =>
  [...cache.list('event')]
    .filter(({ value }) => value.spec.subject.kind === 'jobTemplate')
    .map(({ value }) => value.spec.reason);

function end(cache: Cache): void {
  for (const { key: job, value, revision } of [...cache.list('job')])
    commitPlan(cache, {
      changes: [
        { key: job, ifRevision: revision, value: { ...value, status: { ...value.status, phase: 'Succeeded' } } },
      ],
    });
}

function answerTo(act: () => unknown): string {
  try {
    act();
    return 'accepted';
  } catch (error) {
    return error instanceof Error && 'field' in error ? `${String(error.field)}: ${error.message}` : String(error);
  }
}

describe('the schedule of a job template', () => {
  it('creates a job at each of its times, named by the time', () => {
    const cache = make(daily);
    expect(statusOf(cache)?.nextMs).toBe(bornMs + 15 * hour);
    pass(cache, bornMs, bornMs + 24 * hour);
    end(cache);
    pass(cache, bornMs + 24 * hour, bornMs + 48 * hour);
    expect(jobsOf(cache)).toEqual(['nightly-202611270300', 'nightly-202611280300']);
    expect(cache.get('job', keys.job('default', 'nightly-202611270300'))?.value.metadata.labels).toEqual({
      team: 'web',
      'berth/job-template': 'nightly',
    });
    expect(statusOf(cache)).toMatchObject({ jobs: 2, last: { job: 'nightly-202611280300' } });
  });

  it.each([
    ['skip', ['nightly-202611270300'], ['Queued']],
    ['allow', ['nightly-202611270300', 'nightly-202611280300'], ['Queued', 'Queued']],
    ['replace', ['nightly-202611270300', 'nightly-202611280300'], ['cancelled', 'Queued']],
  ])('with overlap "%s" creates %j while the first has not ended', (overlap, names, states) => {
    const cache = make({ schedule: { ...daily.schedule, overlap } });
    pass(cache, bornMs, bornMs + 48 * hour);
    expect(jobsOf(cache)).toEqual(names);
    const stateOf = (name: string) => cache.get('job', keys.job('default', name))?.value.status;
    expect(names.map((name) => (stateOf(name)?.cancel ? 'cancelled' : 'Queued'))).toEqual(states);
    expect(told(cache).includes('ScheduleSkipped')).toBe(overlap === 'skip');
  });

  it.each([
    ['makes up one that was missed by less than catchUpMs', 9 * minute, ['nightly-202611280300'], []],
    ['says that it missed one by more', 20 * minute, [], ['ScheduleMissed']],
  ])('%s, and never two', (_, lateMs, names, reasons) => {
    const cache = make(daily);
    const thirdDayMs = bornMs + 39 * hour;
    pass(cache, thirdDayMs + lateMs, thirdDayMs + lateMs);
    expect(jobsOf(cache)).toEqual(names);
    expect(told(cache).slice(1)).toEqual(reasons);
  });

  it('creates nothing while it is paused, and makes nothing up when it is resumed', () => {
    const cache = make({ ...daily, paused: true });
    pass(cache, bornMs, bornMs + 15 * hour);
    const resumedMs = bornMs + 15 * hour + minute;
    commitPlan(cache, replaceJobTemplate(cache, inputOf(daily), at(resumedMs)).plan);
    pass(cache, resumedMs, resumedMs + hour);
    expect(jobsOf(cache)).toEqual([]);
    expect(statusOf(cache)?.nextMs).toBe(bornMs + 39 * hour);
  });

  it('says why a job cannot be created, and goes on at the next time', () => {
    const cache = make(daily);
    const image = cache.get('image', keys.image('tiny')) ?? expect.unreachable();
    commitPlan(cache, { changes: [{ key: image.key, ifRevision: image.revision, value: null }] });
    pass(cache, bornMs, bornMs + 24 * hour);
    expect(statusOf(cache)?.conditions[0]).toMatchObject({ status: 'False', reason: 'ScheduleFailed' });
    commitPlan(cache, { changes: [{ key: image.key, ifRevision: 0, value: testImage() }] });
    pass(cache, bornMs + 24 * hour, bornMs + 48 * hour);
    expect(jobsOf(cache)).toEqual(['nightly-202611280300']);
  });

  it('does not repeat after a restore what happened since the backup', () => {
    const cache = make(daily);
    const entry = cache.get('jobTemplate', key) ?? expect.unreachable();
    const restored = restoredRecord(entry.value, { nowMs: bornMs + 15 * hour + minute, newestSession: 0 });
    commitPlan(cache, { changes: [{ key, ifRevision: entry.revision, value: restored }] });
    pass(cache, bornMs + 15 * hour + minute, bornMs + 16 * hour);
    expect(jobsOf(cache)).toEqual([]);
  });
});

describe('a job of a template on request', () => {
  const parameters = [{ name: 'MODE', default: 'full' }, { name: 'BRANCH' }];
  const run = (cache: Cache, input: Partial<RunInput>) => {
    const asked = {
      project: 'default',
      name: 'nightly',
      jobName: 'now',
      labels: { by: 'hand' },
      parameters: {},
      ...input,
    };
    return commitPlan(cache, runJobTemplate(cache, asked, at(bornMs)).plan);
  };

  it('has the values of the parameters in its environment', () => {
    const cache = make({ parameters }, { env: { MODE: 'none', HOME: '/root' } });
    run(cache, { parameters: { BRANCH: 'main' } });
    const job = cache.get('job', keys.job('default', 'now'))?.value;
    expect(job?.spec.env).toEqual({ MODE: 'full', HOME: '/root', BRANCH: 'main' });
    expect(job?.metadata.labels).toEqual({ team: 'web', by: 'hand', 'berth/job-template': 'nightly' });
    expect(statusOf(cache)?.jobs).toBe(1);
  });

  it('is created once for one idempotency key', () => {
    const cache = make({});
    run(cache, { jobName: '', idempotencyKey: 'k' });
    run(cache, { jobName: '', idempotencyKey: 'k' });
    expect(jobsOf(cache)).toEqual([expect.stringMatching(/^nightly-\w+$/)]);
    expect(statusOf(cache)?.jobs).toBe(1);
  });

  it.each([
    ['a missing value', {}, 'spec.parameters.BRANCH: parameter "BRANCH" has no default; give it a value'],
    [
      'an unknown parameter',
      { BRANCHE: 'main' },
      'spec.parameters.BRANCHE: the template has no parameter "BRANCHE"; did you mean "BRANCH"?',
    ],
  ])('is refused with %s', (_, values, answer) => {
    const cache = make({ parameters });
    expect(answerTo(() => run(cache, { parameters: values }))).toBe(answer);
  });

  it('stays when the template is deleted', () => {
    const cache = make({});
    run(cache, {});
    commitPlan(cache, deleteJobTemplate(cache, { project: 'default', name: 'nightly' }, at(bornMs)).plan);
    expect(jobsOf(cache)).toEqual(['now']);
    expect(cache.get('jobTemplate', key)).toBeUndefined();
  });
});

it.each([
  ['an unknown time zone', { schedule: { cron: '0 3 * * *', timeZone: 'Nowhere' } }, {}, 'spec.schedule.timeZone'],
  ['a bad time', { schedule: { cron: '0 25 * * *' } }, {}, 'spec.schedule.cron'],
  ['a schedule that gives no value', { ...daily, parameters: [{ name: 'BRANCH' }] }, {}, 'spec.parameters[0].default'],
  ['a parameter twice', { parameters: [{ name: 'A' }, { name: 'A' }] }, {}, 'spec.parameters[1].name'],
  ['a job without a program', {}, { script: undefined }, 'spec.template.spec.script'],
  ['an unknown image', {}, { label: 'none' }, 'spec.template.spec.label'],
])('refuses %s', (_, spec, job, field) => {
  expect(answerTo(() => make(spec, job)).split(':', 1)[0]).toBe(field);
});
