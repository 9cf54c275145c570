import { describe, expect, it } from 'vitest';
import type { JobSpec } from '../../../api/resources/job.ts';
import { keys } from '../../state/keys.ts';
import {
  commitPlan,
  testCache,
  testContext,
  testGuest,
  testHost,
  testImage,
  testInstance,
  testJob,
  testWarmPool,
} from '../../testing.ts';
import { judge, limits } from './judge.ts';
import { submitJob } from './submit-job.ts';

const pool = testWarmPool('ci', { forJobs: true });
const waiting = testInstance(
  'ci-1',
  { run: { env: {}, artifacts: [], timeLimitMs: 1_000, graceMs: 0, holdOnFailure: false, warm: 'waiting' } },
  {
    ...{ phase: 'Running', host: 'h1', incarnation: 1, guest: testGuest({ ready: true }), runningAtMs: 1 },
    warmPool: { name: 'ci', id: pool.metadata.id, template: 1 },
  },
);

function submit(spec: Partial<JobSpec> = {}, records: Parameters<typeof testCache>[0] = [pool, waiting]) {
  const cache = testCache([testImage(), ...testHost('h1'), ...records]);
  const { label: _label, ...plain } = testJob('a').spec;
  const input = { project: 'default', name: 'a', labels: {}, spec: { ...plain, warmPool: 'ci', ...spec } };
  commitPlan(cache, submitJob(cache, input, testContext()).plan);
  const job = cache.get('job', keys.job('default', 'a'))?.value;
  const instance = cache.get('instance', keys.instance('default', job?.status.instance ?? ''))?.value;
  return { job, instance, pool: cache.get('warmPool', keys.warmPool('default', 'ci'))?.value.status };
}

describe('a job that names a warm pool', () => {
  it('gives its program to a guest that waits', () => {
    const scene = submit({ script: 'make' });
    expect(scene.instance).toMatchObject({
      metadata: { id: waiting.metadata.id, labels: { 'berth/job': 'a', 'berth/warm-pool': 'ci' } },
      spec: { run: { script: 'make', timeLimitMs: 60_000, warm: 'claimed' } },
      status: { claimed: { pool: 'ci', warm: true } },
    });
    expect(scene.instance?.status.warmPool).toBeUndefined();
    expect(scene.job?.status).toMatchObject({
      attempt: 1,
      instance: 'ci-1',
      attempts: [{ instanceId: waiting.metadata.id }],
    });
    expect(scene.pool).toMatchObject({ hits: 1, misses: 0 });
  });

  const repo = { url: 'https://git.example.com/a.git', commit: 'a'.repeat(40) };
  it.each<[string, Partial<JobSpec>, number]>([
    ['a repository', { repo }, 0],
    ['a large program', { script: `#${'x'.repeat(8_000)}` }, 1],
  ])('has an instance of its own with %s', (_, spec, misses) => {
    const scene = submit(spec);
    expect([scene.job?.status.instance, scene.pool?.misses]).toEqual(['a-1', misses]);
  });

  it('has an instance of the template when no guest is ready', () => {
    const scene = submit({}, [pool]);
    expect(scene.instance).toMatchObject({
      metadata: { name: 'a-1' },
      spec: { image: 'tiny', run: { script: 'true' } },
    });
    expect(scene.pool).toMatchObject({ hits: 0, misses: 1 });
  });

  it('is not late because its guest has waited for long', () => {
    const { job, instance } = submit();
    const claimedAtMs = instance?.status.claimed?.atMs ?? 0;
    expect(job && judge(job, instance, claimedAtMs + limits.booting - 1)).toMatchObject({ phase: 'Booting' });
    expect(job && judge(job, instance, claimedAtMs + limits.booting)).toMatchObject({
      over: { reason: 'BootTimeout' },
    });
  });

  it.each<[string, Partial<JobSpec>, Parameters<typeof testCache>[0], string]>([
    ['an unknown pool', { warmPool: 'none' }, [pool], 'spec.warmPool'],
    ['a pool that is not for jobs', {}, [testWarmPool('ci')], 'spec.warmPool'],
    ['CPUs', { cpus: 2 }, [pool], 'spec.cpus'],
    ['a host label', { placement: { hostLabels: { disk: 'fast' } } }, [pool], 'spec.placement'],
    ['another image', { label: 'other' }, [pool], 'spec.label'],
  ])('is refused with %s', (_, spec, records, field) => {
    expect(() => submit(spec, records)).toThrow(expect.objectContaining({ field }));
  });
});
