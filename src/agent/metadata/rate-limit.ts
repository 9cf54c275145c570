// How often each guest may ask: a bucket of calls that fills again with time. Holds no more than it was told guests.

import type { Clock } from '../../base/clock.ts';

export interface RateLimit {
  /** False: too often. */
  take(instanceId: string): boolean;
  forget(instanceId: string): void;
}

export function createRateLimit({
  clock,
  callsPerSecond,
  callsAtOnceMax,
}: {
  readonly clock: Clock;
  readonly callsPerSecond: number;
  readonly callsAtOnceMax: number;
}): RateLimit {
  const buckets = new Map<string, { calls: number; atMs: number }>();
  return {
    take(instanceId) {
      const nowMs = clock.monotonicMs();
      const bucket = buckets.get(instanceId) ?? { calls: callsAtOnceMax, atMs: nowMs };
      buckets.set(instanceId, bucket);
      bucket.calls = Math.min(callsAtOnceMax, bucket.calls + ((nowMs - bucket.atMs) * callsPerSecond) / 1000);
      bucket.atMs = nowMs;
      if (bucket.calls < 1) return false;
      bucket.calls -= 1;
      return true;
    },
    forget: (instanceId) => void buckets.delete(instanceId),
  };
}
