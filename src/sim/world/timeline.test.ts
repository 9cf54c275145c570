import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sleep } from '../../base/clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { system } from '../../base/system.ts';
import { createProcessClock } from './process-clock.ts';
import { Timeline } from './timeline.ts';

describe('the timeline', () => {
  it('fires in the order of time, whatever the order of asking', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1000)), (delaysMs) => {
        const timeline = new Timeline(seededPrng(1));
        const firedMs: number[] = [];
        for (const delayMs of delaysMs) timeline.schedule(delayMs, () => firedMs.push(timeline.nowMs));
        while (timeline.step(2000));
        expect(firedMs).toEqual(delaysMs.toSorted((a, b) => a - b));
        expect(timeline.nowMs).toBe(2000);
      }),
    );
  });

  it('lets the seed choose between what is due at the same moment, and the same seed the same way', () => {
    const order = (seed: number): string => {
      const timeline = new Timeline(seededPrng(seed));
      let text = '';
      for (const name of 'abcdefgh') timeline.schedule(5, () => (text += name));
      while (timeline.step(10));
      return text;
    };
    expect(order(1)).toBe(order(1));
    expect(new Set([order(1), order(2), order(3)]).size).toBeGreaterThan(1);
  });

  it('does not fire what was cancelled', () => {
    const timeline = new Timeline(seededPrng(1));
    const timer = timeline.schedule(5, () => expect.unreachable());
    timer.cancel();
    expect(timeline.step(10)).toBe(false);
  });
});

describe('the clock of a process', () => {
  it('never fires after its death', () => {
    const timeline = new Timeline(seededPrng(1));
    const clock = createProcessClock(timeline);
    clock.setTimer(5, () => expect.unreachable());
    clock.kill();
    while (timeline.step(100));
  });

  it('fires late after a pause, and not at all when cancelled in it', () => {
    const timeline = new Timeline(seededPrng(1));
    const clock = createProcessClock(timeline);
    const firedMs: number[] = [];
    clock.setTimer(5, () => firedMs.push(timeline.nowMs));
    const cancelled = clock.setTimer(6, () => expect.unreachable());
    clock.pause(50);
    while (timeline.step(20));
    cancelled.cancel();
    while (timeline.step(100));
    expect(firedMs).toEqual([50]);
  });

  it('counts at its own rate, and is reached from outside at the true one', () => {
    const timeline = new Timeline(seededPrng(1));
    const clock = createProcessClock(timeline, { rate: 2 });
    const reached: string[] = [];
    clock.setTimer(30, () => reached.push(`timer ${timeline.nowMs} ${clock.monotonicMs()}`));
    clock.deliver(20, () => reached.push(`message ${timeline.nowMs} ${clock.monotonicMs()}`));
    while (timeline.step(100));
    expect(reached).toEqual(['timer 15 30', 'message 20 40']);
  });

  it('gets what came during a pause in the order in which it came, also when the pause is made longer', () => {
    const timeline = new Timeline(seededPrng(1));
    const clock = createProcessClock(timeline);
    const got: number[] = [];
    clock.pause(50);
    for (const at of [10, 20, 30]) clock.deliver(at, () => got.push(at));
    while (timeline.step(15));
    clock.pause(100);
    while (timeline.step(200));
    expect(got).toEqual([10, 20, 30]);
  });

  it('jumps in wall time only', () => {
    const clock = createProcessClock(new Timeline(seededPrng(1)));
    const before = clock.nowMs();
    clock.jump(-5000);
    expect([clock.nowMs() - before, clock.monotonicMs()]).toEqual([-5000, 0]);
  });

  it('leaves what awaits a dead one standing', async () => {
    const timeline = new Timeline(seededPrng(1));
    const clock = createProcessClock(timeline);
    void sleep(clock, 5).then(() => expect.unreachable());
    clock.kill();
    while (timeline.step(100)) await system.turn();
  });
});
