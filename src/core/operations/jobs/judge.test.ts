import { describe, expect, it } from 'vitest';
import type { Instance, InstanceStatus } from '../../../api/resources/instance.ts';
import type { JobStatus } from '../../../api/resources/job.ts';
import type { RunStatus } from '../../../api/resources/run.ts';
import { testGuest, testInstance, testJob } from '../../testing.ts';
import { judge, limits } from './judge.ts';

const nowMs = 10_000_000;
const run = { env: {}, artifacts: [], timeLimitMs: 60_000, graceMs: 10_000, holdOnFailure: false };

function instanceWith(
  phase: InstanceStatus['phase'],
  runStatus?: RunStatus,
  more: Partial<InstanceStatus> = {},
): Instance {
  return testInstance(
    'a-1',
    { run },
    {
      phase,
      scheduledAtMs: nowMs,
      runningAtMs: nowMs,
      guest: testGuest(runStatus === undefined ? {} : { run: runStatus }),
      ...more,
    },
  );
}

const running = (reason: string, sinceMs = nowMs) => ({
  conditions: [{ type: 'Running', status: 'False' as const, reason, message: `because of ${reason}`, sinceMs }],
});

describe('an attempt goes on', () => {
  it.each<[string, Instance, string]>([
    ['in the queue', instanceWith('Pending'), 'Queued'],
    ['on its way to a host', instanceWith('Scheduled'), 'Placing'],
    ['while its guest is made', instanceWith('Starting'), 'Booting'],
    ['while its guest boots', instanceWith('Running'), 'Booting'],
    ['while the guest has not begun it', instanceWith('Running', { state: 'waiting' }), 'Booting'],
    ['while it runs', instanceWith('Running', { state: 'running' }), 'Running'],
    ['while it is suspended', instanceWith('Suspended', { state: 'running' }), 'Running'],
    ['while its results are on their way', instanceWith('Running', { state: 'finishing' }), 'Finishing'],
    [
      'until its host says how it ended',
      instanceWith('Exited', { state: 'finishing' }, running('GuestShutdown')),
      'Finishing',
    ],
  ])('%s', (_, instance, phase) => expect(judge(testJob('a'), instance, nowMs)).toMatchObject({ phase }));
});

describe('an attempt is over', () => {
  it.each<[string, Instance | undefined, number, string, string]>([
    ['with its instance', undefined, 0, 'infrastructure', 'InstanceRemoved'],
    [
      'with exit code 0',
      instanceWith('Running', { state: 'ended', outcome: 'exited', exitCode: 0 }),
      0,
      'succeeded',
      'Succeeded',
    ],
    [
      'with exit code 0, and says what is missing',
      instanceWith('Running', { state: 'ended', outcome: 'exited', exitCode: 0, reason: 'ArtifactsTooLarge' }),
      0,
      'succeeded',
      'ArtifactsTooLarge',
    ],
    [
      'with another exit code',
      instanceWith('Exited', { state: 'ended', outcome: 'exited', exitCode: 3 }),
      0,
      'failure',
      'ExitCode',
    ],
    [
      'by a signal',
      instanceWith('Exited', { state: 'ended', outcome: 'exited', exitCode: 137 }),
      0,
      'failure',
      'ExitCode',
    ],
    ['at its time limit', instanceWith('Running', { state: 'ended', outcome: 'timedOut' }), 0, 'timedOut', 'TimedOut'],
    [
      'when its guest is lost',
      instanceWith('Failed', { state: 'ended', outcome: 'lost', reason: 'GuestEnded' }),
      0,
      'infrastructure',
      'GuestEnded',
    ],
    [
      'when its guest restarted',
      instanceWith('Running', { state: 'ended', outcome: 'lost', reason: 'GuestRestarted' }),
      0,
      'infrastructure',
      'GuestRestarted',
    ],
    [
      'when its image cannot be fetched',
      instanceWith('Failed', undefined, running('ImageUnavailable')),
      0,
      'infrastructure',
      'ImageUnavailable',
    ],
    [
      'when its commit does not exist',
      instanceWith('Failed', undefined, running('CommitNotFound')),
      0,
      'failure',
      'CommitNotFound',
    ],
    [
      'when its host is lost',
      instanceWith('Failed', { state: 'running' }, running('HostLost')),
      0,
      'infrastructure',
      'HostLost',
    ],
    ['when its guest never comes up', instanceWith('Starting'), limits.preparing, 'infrastructure', 'NeverCameUp'],
    ['when its guest does not begin', instanceWith('Running'), limits.booting, 'infrastructure', 'BootTimeout'],
    [
      'when its host does not end it',
      instanceWith('Running', { state: 'running' }),
      70_000 + limits.late,
      'timedOut',
      'TimedOut',
    ],
    [
      'when its results do not come',
      instanceWith('Running', { state: 'finishing' }),
      70_000 + limits.late + limits.finishing,
      'infrastructure',
      'ResultsLate',
    ],
    [
      'when its host has no last words',
      instanceWith('Exited', { state: 'running' }, running('GuestShutdown')),
      limits.lastWords,
      'infrastructure',
      'GuestShutdown',
    ],
  ])('%s', (_, instance, laterMs, outcome, reason) => {
    const job = testJob('a', {}, { startedAtMs: nowMs });
    expect(judge(job, instance, nowMs + laterMs)).toMatchObject({ over: { outcome, reason } });
    if (laterMs > 0) expect(judge(job, instance, nowMs + laterMs - 1).over).toBeUndefined();
  });
});

describe('the last words of a host', () => {
  it.each([
    ['are waited for when its clock is a little ahead', limits.lastWords, undefined],
    ['are not waited for until a clock far ahead is reached', 1_000_000, { outcome: 'infrastructure' }],
  ])('%s', (_, aheadMs, over) => {
    const instance = instanceWith('Exited', { state: 'running' }, running('GuestShutdown', nowMs + aheadMs));
    const judgement = judge(testJob('a', {}, { startedAtMs: nowMs }), instance, nowMs);
    if (over === undefined) expect(judgement.over).toBeUndefined();
    else expect(judgement.over).toMatchObject(over);
  });
});

describe('a cancelled attempt', () => {
  const cancel: JobStatus['cancel'] = { atMs: nowMs, reason: 'CancelRequested', message: 'cancelled on request' };
  const job = testJob('a', {}, { cancel, startedAtMs: nowMs });
  const over = { over: { outcome: 'cancelled', reason: 'CancelRequested' } };
  it.each<[string, Instance]>([
    ['in the queue', instanceWith('Pending')],
    ['while its guest is made', instanceWith('Starting')],
    ['while its guest boots', instanceWith('Running')],
    ['on a lost host', instanceWith('Failed', undefined, running('HostLost'))],
  ])('is over at once %s', (_, instance) => expect(judge(job, instance, nowMs)).toMatchObject(over));
  it('waits for the program to end, and not for ever', () => {
    const instance = instanceWith('Running', { state: 'running' });
    expect(judge(job, instance, nowMs).over).toBeUndefined();
    expect(judge(job, instance, nowMs + 10_000 + limits.late)).toMatchObject(over);
  });
  it('says why its program was stopped', () => {
    const instance = instanceWith('Stopping', { state: 'ended', outcome: 'cancelled', exitCode: 143 });
    const verdict = { ...over.over, message: 'cancelled on request', exitCode: 143 };
    expect(judge(job, instance, nowMs)).toMatchObject({ over: verdict });
  });
  it('does not wait for a clock far ahead of this one to be reached', () => {
    const ahead = testJob('a', {}, { cancel: { ...cancel, atMs: nowMs + 1_000_000 }, startedAtMs: nowMs });
    expect(judge(ahead, instanceWith('Running', { state: 'running' }), nowMs)).toMatchObject(over);
  });
  it('keeps the verdict of a program that ended by itself before', () => {
    const instance = instanceWith('Stopping', { state: 'ended', outcome: 'exited', exitCode: 0 });
    expect(judge(job, instance, nowMs)).toMatchObject({ over: { outcome: 'succeeded' } });
  });
});
