import { beforeEach, describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { Lease } from './lease.ts';

describe('a lease', () => {
  let clock: ReturnType<typeof createManualClock>;
  let suspendedMs: number;
  let ends: number;
  let lease: Lease;
  beforeEach(() => {
    clock = createManualClock();
    suspendedMs = 0;
    ends = 0;
    lease = new Lease({ clock, bootMs: () => clock.monotonicMs() + suspendedMs, onEnd: () => (ends += 1) });
    lease.begin(lease.nowMs, 1_000);
    lease.tell();
  });

  it('is valid from when the call was sent, not from its answer', () => {
    const sentMs = lease.nowMs;
    clock.advance(900);
    lease.renew(sentMs);
    expect(lease.held).toBe(true);
    clock.advance(100);
    expect([lease.held, ends]).toEqual([false, 1]);
  });

  it('counts the time in which the machine was suspended', () => {
    suspendedMs = 1_000;
    expect(lease.held).toBe(false);
  });

  it('is held again only with the orders of a new session', () => {
    clock.advance(1_000);
    lease.renew(lease.nowMs);
    lease.tell();
    expect([lease.held, lease.endedInSession]).toEqual([false, true]);
    lease.begin(lease.nowMs, 1_000);
    expect([lease.held, lease.endedInSession]).toEqual([false, false]);
    lease.tell();
    expect(lease.held).toBe(true);
  });

  it('is not ended by a new session', () => {
    clock.advance(500);
    lease.begin(lease.nowMs, 1_000);
    expect([lease.held, ends]).toEqual([true, 0]);
  });
});
