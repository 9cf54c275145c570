import { beforeEach, describe, expect, it } from 'vitest';
import { Silence } from './silence.ts';

describe('silence', () => {
  let nowMs: number;
  let silence: Silence;
  beforeEach(() => {
    nowMs = 0;
    silence = new Silence(() => nowMs);
    silence.noteHeartbeat('h1');
  });
  const silentMs = (): number => nowMs - (silence.seenAtMs('h1') ?? 0);

  it('does not count as silence the time in which the store did not answer', () => {
    nowMs = 1000;
    silence.noteHeard();
    nowMs = 6000;
    silence.noteDeaf(); // it has not answered since 1000
    expect(silentMs()).toBe(1000);
    nowMs = 60_000;
    expect(silentMs()).toBe(1000);
    silence.noteHeard();
    nowMs = 63_000;
    expect(silentMs()).toBe(4000);
    silence.noteHeartbeat('h1');
    expect(silentMs()).toBe(0);
  });

  it('does not count as silence the time in which the process stood still', () => {
    silence.noteAwake(1500);
    nowMs = 1000;
    silence.noteAwake(1500);
    expect(silentMs()).toBe(1000);
    nowMs = 90_000;
    expect(silentMs()).toBe(1000);
    silence.noteAwake(1500);
    nowMs = 91_000;
    expect(silentMs()).toBe(2000);
  });

  it('takes off a standstill once, also when the store comes back in its midst', () => {
    nowMs = 40_000;
    silence.noteHeard();
    silence.noteAwake(1500);
    nowMs = 60_000;
    silence.noteDeaf();
    silence.noteHeard();
    nowMs = 61_000;
    expect(silentMs()).toBe(40_000);
    silence.noteAwake(1500);
    expect(silentMs()).toBe(40_000);
  });

  it('counts a share of the silence of a time that is excused in part', () => {
    nowMs = 8000;
    silence.excuse(5000, 2 / 3);
    expect(silentMs()).toBe(6000);
    silence.noteHeard();
    silence.noteDeaf();
    nowMs = 11_000;
    silence.excuse(8000, 2 / 3);
    silence.noteHeard();
    expect(silentMs()).toBe(6000);
  });

  it('excuses nothing twice: what the store was away for counts for nothing, and of the rest a share does', () => {
    nowMs = 4000;
    silence.noteHeard();
    silence.noteDeaf();
    nowMs = 7000;
    silence.noteHeard();
    expect(silentMs()).toBe(4000);
    nowMs = 10_000;
    silence.excuse(1000, 2 / 3);
    expect(silentMs()).toBe(5000);
    silence.noteDeaf(); // since 7000, of which a share is discounted already
    nowMs = 12_000;
    silence.noteHeard();
    expect(silentMs()).toBe(5000);
  });
});
