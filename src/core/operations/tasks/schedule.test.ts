import { describe, expect, it } from 'vitest';
import { taskAtOnce } from '../../controllers/task-at-once.ts';
import { commitPlan, testCache, testContext, testHost } from '../../testing.ts';
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
