import { describe, expect, it } from 'vitest';
import { testCache, testHost, testImage, testInstance } from '../../testing.ts';
import { requestOf } from '../request.ts';
import { schedule } from '../schedule.ts';
import { pointsOn } from './test-rule.ts';

const hosts = {
  cpus: { capacity: { VCPU: 2, MEMORY_MB: 16_384 } },
  memory: { capacity: { VCPU: 16, MEMORY_MB: 1024 } },
};

describe('best-fit', () => {
  const spec = { cpus: 1, memoryMiB: 512, placement: { profile: 'best-fit' as const } };
  it('weighs CPUs by 2: 1 of 2, 1 of 16', () => {
    expect(pointsOn('cpu-utilization', hosts, spec)).toEqual({ cpus: 2 * 50, memory: 2 * 6.25 });
  });
  it('weighs memory by 2: 512 of 16384, 512 of 1024', () => {
    expect(pointsOn('memory-utilization', hosts, spec)).toEqual({ cpus: 2 * 3.125, memory: 2 * 50 });
  });
  it('weighs the number of instances by 1: the first of 4, of 100 without a quota', () => {
    const counted = { quota: { spec: { instancesMax: 4 } }, none: {} };
    expect(pointsOn('guest-count', counted, spec)).toEqual({ quota: 25, none: 1 });
  });
  it('is weighed otherwise on request, and by the pool', () => {
    const weights = { 'cpu-utilization': 0, 'memory-utilization': 1, 'guest-count': 0 };
    const pool = {
      kind: 'pool',
      schemaVersion: 1,
      metadata: testImage('default').metadata,
      spec: { description: '', profile: 'best-fit', weights },
      status: {},
    } as const;
    const records = Object.entries(hosts).flatMap(([name, host]) => testHost(name, host));
    const chosen = (cache: ReturnType<typeof testCache>, placement = {}) => {
      const answer = schedule(cache, requestOf(cache, testInstance('web', { ...spec, placement })));
      return answer.placed && answer.host;
    };
    const plain = testCache([testImage(), ...records]);
    const pooled = testCache([testImage(), pool, ...records]);
    expect(chosen(plain, spec.placement)).toBe('memory'); // 12.5 + 100 + 1 over 100 + 6.25 + 1
    expect(chosen(plain, { ...spec.placement, weights: { 'memory-utilization': 0 } })).toBe('cpus');
    expect(chosen(pooled)).toBe('memory');
    expect(chosen(pooled, { weights: { 'cpu-utilization': 5 } })).toBe('cpus');
  });
});
