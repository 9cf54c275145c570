// What a wall clock of a time zone shows. Pure: the rules of time zones are part of the language.

import type { WallMs } from './cron.ts';

export function wallOf(timeZone: string, nowMs: number): WallMs {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone,
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', hourCycle: 'h23' },
  }).formatToParts(nowMs);
  const of = (type: string): number => Number(parts.find((part) => part.type === type)?.value);
  return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'));
}

/** When the clock shows `wallMs`, which is later than what it shows at `nowMs`. What a clock skips in spring comes as much later. */
export function timeOfWall(timeZone: string, wallMs: WallMs, nowMs: number): number {
  const minuteMs = nowMs - (nowMs % 60_000);
  const guessMs = minuteMs + (wallMs - wallOf(timeZone, minuteMs));
  const otherMs = guessMs - (wallOf(timeZone, guessMs) - wallMs);
  return wallOf(timeZone, otherMs) === wallMs ? otherMs : guessMs;
}
