import { describe, expect, it } from 'vitest';
import { GuestUsages } from './guest-usages.ts';

const guest = (instanceId: string, cpuMs: number, more: object = {}) => ({
  ...{ instanceId, incarnation: 1, cpuMs, memoryBytes: 1_000 },
  ...more,
});
const at = (seconds: number) => ({ nowMs: 1_700_000_000_000 + seconds * 1_000, monotonicMs: seconds * 1_000 });

describe('guest usages', () => {
  it('say how many processors a guest used between two measurements', () => {
    const usages = new GuestUsages();
    usages.note('h1', { sampledMs: 50_000, guests: [guest('a', 4_000)] }, at(0));
    expect(usages.of('h1', 'a', 0)).toMatchObject({ cpus: undefined, counters: { cpuMs: 4_000 } });
    usages.note('h1', { sampledMs: 60_000, guests: [guest('a', 19_000)] }, at(10));
    expect(usages.of('h1', 'a', 0)).toMatchObject({ cpus: 1.5, measuredAtMs: 1_700_000_010_000 }); // 15 s in 10 s
  });

  it('say nothing of a guest that was started again, until it was measured twice', () => {
    const usages = new GuestUsages();
    usages.note('h1', { sampledMs: 0, guests: [guest('a', 4_000)] }, at(0));
    usages.note('h1', { sampledMs: 10_000, guests: [guest('a', 1_000)] }, at(10));
    expect(usages.of('h1', 'a', 0)?.cpus).toBeUndefined();
    usages.note('h1', { sampledMs: 20_000, guests: [guest('a', 9_000, { incarnation: 2 })] }, at(20));
    expect(usages.of('h1', 'a', 0)?.cpus).toBeUndefined();
  });

  it('total what the guests of a host use now', () => {
    const usages = new GuestUsages();
    const memoryBytes = 3 * 1024 ** 2;
    usages.note('h1', { sampledMs: 0, guests: [guest('a', 0), guest('b', 0)] }, at(0));
    usages.note('h1', { sampledMs: 10_000, guests: [guest('a', 15_000, { memoryBytes }), guest('b', 2_500)] }, at(10));
    expect([...usages.totals(10_000)]).toEqual([['h1', { milliCpus: 1_750, memoryMiB: 3 }]]); // 1.5 and 0.25
    expect(usages.totals(10_001).size).toBe(0);
  });

  it('forget what is old, and guests of which the host no longer speaks', () => {
    const usages = new GuestUsages();
    usages.note('h1', { sampledMs: 0, guests: [guest('a', 1), guest('b', 1)] }, at(0));
    usages.note('h1', { sampledMs: 10_000, guests: [guest('b', 2)] }, at(10));
    expect([usages.of('h1', 'a', 0), usages.of('h1', 'b', 10_001)]).toEqual([undefined, undefined]);
    expect(usages.of('h1', 'b', 10_000)).toBeDefined();
  });

  it('sum what guests of a host used since the first measurement, those that are gone included', () => {
    const usages = new GuestUsages();
    const sums = () => [...usages.hosts(0)][0]?.sums;
    usages.note('h1', { sampledMs: 0, guests: [guest('a', 5_000, { networkSentBytes: 7 })] }, at(0));
    expect(sums()).toMatchObject({ cpuMs: 0, networkSentBytes: 0 }); // it may have been counted by another server
    usages.note('h1', { sampledMs: 1, guests: [guest('a', 6_000, { networkSentBytes: 9 }), guest('b', 300)] }, at(1));
    usages.note('h1', { sampledMs: 2, guests: [guest('b', 200)] }, at(2));
    expect(sums()).toMatchObject({ cpuMs: 1_000 + 300 + 200, networkSentBytes: 2 });
  });
});
