// When a delivery that failed is tried again: the schedule that the Standard Webhooks specification recommends, three days in all.

import type { Prng } from '../../../base/prng.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** After the first attempt, the second, ... */
const delaysMs = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
] as const;

/** A receiver may ask for more time, but not for days. */
const retryAfterMsMax = hour;

/** Milliseconds until the next attempt; undefined: there is none. Up to a tenth is added by chance, so that receivers are not asked at once. */
export function retryDelayMs(attempts: number, prng: Prng, retryAfterMs = 0): number | undefined {
  const delayMs = delaysMs[attempts - 1];
  if (delayMs === undefined) return undefined;
  const asked = Math.min(Math.max(retryAfterMs, 0), retryAfterMsMax);
  return Math.max(delayMs + prng.below(Math.ceil(delayMs / 10)), asked);
}

/** Seconds, or a date; undefined: it is neither. */
export function retryAfterMsOf(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1_000;
  const atMs = /^[A-Z][a-z]{2}, /.test(header) ? Date.parse(header) : Number.NaN; // RFC 9110, HTTP-date
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
