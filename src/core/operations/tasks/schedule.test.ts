import { describe, expect, it } from 'vitest';
import { taskAtOnce } from '../../controllers/tasks/task-at-once.ts';
import { commitPlan, testCache, testContext, testHost, testProject } from '../../testing.ts';
import { scheduleResultOf, scheduleTask } from './schedule.ts';

describe('a request that no host has room for', () => {
  it.each([
    ['fail', { status: 'failed', error: 'No available nodes: 0 of 1 host: 1 InsufficientCpu' }],
    ['wait', { status: 'processing' }],
  ] as const)('may %s', (whenFull, expected) => {
    const cache = testCache([...testHost('h1', { capacity: { VCPU: 4, MEMORY_MB: 4096 } })]);
    const ctx = testContext();
    const request = { requested_cpu: 5, requested_memory: 64, dedicated: false };
    const input = { project: 'default', request, ttlMs: 60_000, whenFull, seed: 'a' };
    const created = taskAtOnce(cache, scheduleTask(cache, input, ctx), ctx);
    commitPlan(cache, created.plan);
    const task = cache.get('task', created.key)?.value;
    expect(task && scheduleResultOf(task, cache)).toEqual(expected);
  });
});

it('fails for good above the quota where that is asked for: its repetition holds no room later', () => {
  const small = testProject('default', { quota: { VCPU: 1 } });
  const cache = testCache([...testHost('h1', { capacity: { VCPU: 4, MEMORY_MB: 4096 } }), small]);
  const ctx = testContext();
  const request = { requested_cpu: 2, requested_memory: 64, dedicated: false };
  const input = {
    project: 'default',
    request,
    ttlMs: 60_000,
    whenFull: 'fail',
    seed: 'a',
    idempotencyKey: 'k',
  } as const;
  expect(() => scheduleTask(cache, input, ctx)).toThrow(/has 0 of 1 VCPU/);
  const refused = scheduleTask(cache, { ...input, whenOverQuota: 'fail' }, ctx);
  commitPlan(cache, taskAtOnce(cache, refused, ctx).plan);
  const [project] = [...cache.list('project')];
  if (project)
    commitPlan(cache, { changes: [{ key: project.key, ifRevision: project.revision, value: testProject('default') }] });
  const again = scheduleTask(cache, { ...input, whenOverQuota: 'fail' }, ctx);
  expect([again.key, again.changed]).toEqual([refused.key, false]);
  const task = cache.get('task', again.key)?.value;
  expect(task && scheduleResultOf(task, cache)).toEqual({
    status: 'failed',
    error: expect.stringMatching(/^No available nodes: project "default" has 0 of 1 VCPU/),
  });
});
