import { expect, it } from 'vitest';
import { silentLogger } from '../base/log.ts';
import { createManualClock } from '../base/manual-clock.ts';
import { testCache } from '../core/testing.ts';
import { Hearing } from './hearing.ts';

const offlineAfterMs = 60_000;

/** A host that was heard once, at the start, and a process that waits in half of the time until it is told otherwise. */
function rig() {
  const clock = createManualClock();
  let [busyShare, idleMs] = [0.5, 0];
  const lease = { kind: 'lease', host: 'h1', epoch: 1, renewedAtMs: 0 } as const;
  const cache = testCache([lease], () => clock.monotonicMs());
  const said: string[] = [];
  const say = (message: string) => said.push(message);
  const log = { ...silentLogger, warn: say, info: say };
  const hearing = new Hearing({ silence: cache.silence, clock, idleMs: () => idleMs, offlineAfterMs, log });
  hearing.start();
  const pass = (ms: number, share = busyShare): void => {
    busyShare = share;
    for (let left = ms; left > 0; left -= 1000) {
      idleMs += 1000 * (1 - share);
      clock.advance(1000);
    }
  };
  const silentMs = (): number => clock.monotonicMs() - (cache.leaseSeenAtMs('h1') ?? Number.NaN);
  return { hearing, said, pass, silentMs, clock };
}

it('counts the silence of hosts while this process rests now and then', () => {
  const { pass, silentMs, hearing } = rig();
  pass(30_000);
  pass(30_000, 0.98);
  expect(silentMs()).toBe(60_000);
  expect(hearing.overloaded).toBe(false);
});

it('counts a third of it while this process never rests, and says so once', () => {
  const { pass, silentMs, hearing, said } = rig();
  pass(30_000);
  pass(90_000, 1);
  expect(silentMs()).toBeCloseTo(60_000);
  expect(hearing.overloaded).toBe(true);
  pass(10_000, 0.5);
  expect(hearing.overloaded).toBe(false);
  pass(5_000);
  expect(silentMs()).toBeCloseTo(75_000);
  expect(said).toEqual([
    'more comes than is kept up with; a host may be silent three times as long now',
    'keeps up with what comes again',
  ]);
});

it.each([
  [120_000, 0],
  [10_000, 10_000],
  [120_000, 10_000],
  [115_000, 5_000],
])(
  'finds the dead within three times as long, though it is busy for %i ms and rests for %i in turns',
  (busyMs, restMs) => {
    const { pass, silentMs, clock } = rig();
    while (clock.monotonicMs() < 3 * offlineAfterMs) {
      pass(busyMs, 1);
      pass(restMs, 0.5);
    }
    expect(silentMs()).toBeGreaterThan(offlineAfterMs - 1);
  },
);

it('takes a standstill for one, however little it has rested', () => {
  let nowMs = 0;
  let look = (): void => expect.unreachable();
  const setTimer = (_delayMs: number, fire: () => void) => {
    look = fire;
    return { cancel() {} };
  };
  const lease = { kind: 'lease', host: 'h1', epoch: 1, renewedAtMs: 0 } as const;
  const cache = testCache([lease], () => nowMs);
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs, setTimer };
  new Hearing({
    silence: cache.silence,
    clock,
    idleMs: () => Math.min(nowMs, 10_000),
    offlineAfterMs,
    log: silentLogger,
  }).start();
  nowMs = 10_000;
  look();
  nowMs = 100_000;
  look();
  nowMs = 105_000;
  expect(nowMs - (cache.leaseSeenAtMs('h1') ?? Number.NaN)).toBe(15_000);
});
