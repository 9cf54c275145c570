// How many guests a warm pool has by its schedule: a window is open when it began later than it ended last, on the wall clock of its time
// zone. The hour that is repeated in autumn is passed through twice.

import type { WarmPoolSpec, WarmSchedule } from '../../api/resources/warm-pool.ts';
import { lastTimeOf, parseCron, type WallMs } from '../times/cron.ts';
import { assertCron, assertTimeZone } from '../times/assert-times.ts';
import { wallOf } from '../times/wall-clock.ts';

export function scheduledSize({ size, schedule }: Pick<WarmPoolSpec, 'size' | 'schedule'>, nowMs: number): number {
  if (schedule === undefined) return size;
  const wallMs = wallOf(schedule.timeZone, nowMs);
  const open = schedule.windows.find(({ from, to }) => isOpen(from, to, wallMs));
  return open?.size ?? size;
}

/** Windows begin and end on whole minutes. */
export function untilNextMinuteMs(nowMs: number): number {
  return 60_000 - (nowMs % 60_000);
}

/** Throws `InvalidRequest` naming the field. */
export function assertSchedule(schedule: WarmSchedule | undefined): void {
  if (schedule === undefined) return;
  assertTimeZone(schedule.timeZone, 'spec.schedule.timeZone');
  for (const [i, window] of schedule.windows.entries())
    for (const end of ['from', 'to'] as const) assertCron(window[end], `spec.schedule.windows[${i}].${end}`);
}

function isOpen(from: string, to: string, wallMs: WallMs): boolean {
  const [begun, ended] = [lastOf(from, wallMs), lastOf(to, wallMs)];
  return begun !== undefined && (ended === undefined || begun > ended);
}

function lastOf(text: string, wallMs: WallMs): WallMs | undefined {
  const parsed = parseCron(text);
  return 'cron' in parsed ? lastTimeOf(parsed.cron, wallMs) : undefined;
}
