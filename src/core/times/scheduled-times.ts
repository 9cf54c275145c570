// The times of a schedule. Each has a number that grows, so that none is decided on twice: a schedule for every hour counts the minutes
// that pass, and goes on through the hour that a clock repeats in autumn; any other counts the minutes that the clock shows.

import { type Cron, lastTimeOf, nextTimeOf, parseCron, type WallMs } from './cron.ts';
import { timeOfWall, wallOf } from './wall-clock.ts';

export interface ScheduledTime {
  readonly number: number;
  readonly atMs: number;
  /** 202611260300 */
  readonly stamp: string;
}

interface Times {
  readonly cron: string;
  readonly timeZone: string;
}

/** The newest up to now; undefined: none yet. */
export function lastScheduledTime({ cron: text, timeZone }: Times, nowMs: number): ScheduledTime | undefined {
  const cron = read(text);
  const wallNow = wallOf(timeZone, nowMs);
  const wallMs = cron === undefined ? undefined : lastTimeOf(cron, wallNow);
  if (cron === undefined || wallMs === undefined) return undefined;
  const atMs = nowMs - (nowMs % 60_000) - (wallNow - wallMs);
  return { number: cron.hours.size === 24 ? atMs : wallMs, atMs, stamp: stampOf(wallMs) };
}

export function nextScheduledTimeMs({ cron: text, timeZone }: Times, nowMs: number): number | undefined {
  const cron = read(text);
  const wallMs = cron === undefined ? undefined : nextTimeOf(cron, wallOf(timeZone, nowMs));
  return wallMs === undefined ? undefined : timeOfWall(timeZone, wallMs, nowMs);
}

/** Of a schedule that begins now: times before are not made up. */
export function scheduleFrom(times: Times, nowMs: number): { readonly handled: number; readonly nextMs?: number } {
  const nextMs = nextScheduledTimeMs(times, nowMs);
  const handled = lastScheduledTime(times, nowMs)?.number ?? 0;
  return nextMs === undefined ? { handled } : { handled, nextMs };
}

function read(text: string): Cron | undefined {
  const parsed = parseCron(text);
  return 'cron' in parsed ? parsed.cron : undefined;
}

function stampOf(wallMs: WallMs): string {
  return new Date(wallMs)
    .toISOString()
    .slice(0, 16)
    .replaceAll(/[^0-9]/g, '');
}
