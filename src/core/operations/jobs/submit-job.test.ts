import { describe, expect, it } from 'vitest';
import { keys } from '../../state/keys.ts';
import { commitPlan, testCache, testContext, testImage, testJob, testProject } from '../../testing.ts';
import { jobOutlooks } from './outlook.ts';
import { submitJob } from './submit-job.ts';

function submit(...records: Parameters<typeof testCache>[0]) {
  const cache = testCache([testImage(), ...records]);
  const ctx = testContext();
  const input = { project: 'default', name: 'a', labels: {}, spec: testJob('a').spec, idempotencyKey: 'k' };
  commitPlan(cache, submitJob(cache, input, ctx).plan);
  const job = cache.get('job', keys.job('default', 'a'))?.value;
  const instance = cache.get('instance', keys.instance('default', 'a-1'))?.value;
  return { cache, ctx, input, job, instance };
}

describe('a submitted job', () => {
  it('comes with the instance of its first attempt', () => {
    const { job, instance } = submit();
    expect(job?.status).toMatchObject({
      phase: 'Queued',
      attempt: 1,
      instance: 'a-1',
      attempts: [{ number: 1, instanceId: instance?.metadata.id }],
    });
  });

  it('says what its instance waits for', () => {
    const { cache, ctx, job } = submit();
    expect(job && jobOutlooks(cache, ctx)(job)).toEqual({ queuePosition: 1, message: 'waiting in the queue' });
  });

  it('is accepted without one where the quota has no room', () => {
    const { job, instance } = submit(testProject('default', { quota: { INSTANCES: 0 } }));
    expect(job?.status).toMatchObject({ phase: 'Queued', attempt: 0, attempts: [] });
    expect(instance).toBeUndefined();
  });

  it('twice with one key is one', () => {
    const { cache, ctx, input } = submit();
    const { plan, changed } = submitJob(cache, input, ctx);
    expect({ changed, changes: plan.changes }).toEqual({ changed: false, changes: [] });
  });
});
