import { expect, it } from 'vitest';
import { createManualClock } from '../base/manual-clock.ts';
import { silentLogger } from '../base/log.ts';
import { testCache } from '../core/testing.ts';
import { Hearing } from './hearing.ts';

const offlineAfterMs = 60_000;

/** A host that was heard once, at the start, and a process that waits in `idleShare` of the time. */
function rig() {
  const clock = createManualClock();
  let [idleShare, idleMs] = [0.5, 0];
  const lease = { kind: 'lease', host: 'h1', epoch: 1, renewedAtMs: 0 } as const;
  const cache = testCache([lease], () => clock.monotonicMs());
  const said: string[] = [];
  const log = {
    ...silentLogger,
    warn: (message: string) => said.push(message),
    info: (message: string) => said.push(message),
  };
  const hearing = new Hearing({ cache, clock, idleMs: () => idleMs, offlineAfterMs, log });
  hearing.start();
  return {
    hearing,
    said,
    busy(share: number): void {
      idleShare = 1 - share;
    },
    pass(ms: number): void {
      for (let left = ms; left > 0; left -= 1000) {
        idleMs += 1000 * idleShare;
        clock.advance(1000);
      }
    },
    silentMs: () => clock.monotonicMs() - (cache.leaseSeenAtMs('h1') ?? Number.NaN),
  };
}

it('counts the silence of hosts while this process rests now and then', () => {
  const { pass, busy, silentMs, hearing } = rig();
  pass(30_000);
  busy(0.98);
  pass(30_000);
  expect(silentMs()).toBe(60_000);
  expect(hearing.overloaded).toBe(false);
});

it('does not count it while this process never rests, and says so once', () => {
  const { pass, busy, silentMs, hearing, said } = rig();
  pass(30_000);
  busy(1);
  pass(90_000);
  expect(silentMs()).toBe(30_000);
  expect(hearing.overloaded).toBe(true);
  busy(0.5);
  pass(10_000);
  expect(hearing.overloaded).toBe(false);
  pass(5_000);
  expect(silentMs()).toBe(35_000);
  expect(said).toEqual([
    'more comes than is kept up with: for a while the silence of hosts counts for nothing',
    'at rest again: the silence of hosts counts',
  ]);
});

it('excuses a host for no more than twice the time that it may be silent, so that the dead are found in the end', () => {
  const { pass, busy, silentMs } = rig();
  busy(1);
  pass(130_000);
  expect(silentMs()).toBe(0);
  pass(offlineAfterMs);
  expect(silentMs()).toBe(offlineAfterMs);
});

it('looks no more once it is stopped', () => {
  const { pass, hearing, silentMs } = rig();
  hearing.stop();
  pass(90_000);
  expect(silentMs()).toBe(0); // nobody says that this process runs
});
