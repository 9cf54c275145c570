import { describe, expect, it } from 'vitest';
import type { InstanceUsage } from '../../../src/api/guests/guest-usage.ts';
import { seriesOf, valueText, withSample } from './usage-series.ts';

const sample = (atMs: number, more: Partial<InstanceUsage> = {}): InstanceUsage => ({
  ...{ project: 'p', instance: 'a', host: 'h1', measuredAtMs: atMs, cpuMs: atMs, memoryBytes: 1024 },
  ...more,
});

describe('the use of a guest over time', () => {
  it('takes each measurement once, and begins again with the guest', () => {
    const two = withSample(withSample([], sample(1_000)), sample(2_000));
    expect(withSample(two, sample(2_000))).toBe(two);
    expect(withSample(two, sample(3_000, { cpuMs: 5 }))).toHaveLength(1);
  });

  it('has counters per second, and leaves out what is not measured', () => {
    const samples = [
      sample(0, { networkSentBytes: 100 }),
      sample(2_000, { networkSentBytes: 1_100, cpus: 0.5 }),
      sample(4_000, { networkSentBytes: 1_100, cpus: 0.25 }),
    ];
    expect(seriesOf(samples).map(({ name, points }) => [name, points.map(({ value }) => value)])).toEqual([
      ['CPUs in use', [0.5, 0.25]],
      ['Memory', [1024, 1024, 1024]],
      ['Network, sent', [500, 0]],
    ]);
  });

  it.each([
    [0.256, 'CPUs', '0.26'],
    [512, 'bytes', '512 B'],
    [1_536, 'bytes/s', '1.5 KiB/s'],
    [200 * 1024 ** 2, 'bytes', '200 MiB'],
  ] as const)('%s %s is %s', (value, unit, text) => {
    expect(valueText(value, unit)).toBe(text);
  });
});
