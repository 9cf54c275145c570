// How many guests a warm pool has by its schedule: a window is open when it began later than it ended last, on the wall clock of its time
// zone. The hour that is repeated in autumn is passed through twice.

import { ApiError } from '../../api/errors.ts';
import type { WarmPoolSpec, WarmSchedule } from '../../api/resources/warm-pool.ts';
import { lastTimeOf, parseCron, type WallMs } from './cron.ts';

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
  const refuse = (field: string, message: string): never => {
    throw new ApiError('InvalidRequest', `${field}: ${message}`, { field });
  };
  try {
    wallOf(schedule.timeZone, 0);
  } catch {
    // The only fault that it can have.
    refuse(
      'spec.schedule.timeZone',
      `there is no time zone "${schedule.timeZone}"; write UTC, or one as Europe/Berlin`,
    );
  }
  for (const [i, window] of schedule.windows.entries())
    for (const end of ['from', 'to'] as const) {
      const field = `spec.schedule.windows[${i}].${end}`;
      const parsed = parseCron(window[end]);
      if ('fault' in parsed) refuse(field, parsed.fault);
      else if (lastTimeOf(parsed.cron, Date.UTC(2033, 0)) === undefined)
        refuse(field, `"${window[end]}" names no day that there is`);
    }
}

function isOpen(from: string, to: string, wallMs: WallMs): boolean {
  const [begun, ended] = [lastOf(from, wallMs), lastOf(to, wallMs)];
  return begun !== undefined && (ended === undefined || begun > ended);
}

function lastOf(text: string, wallMs: WallMs): WallMs | undefined {
  const parsed = parseCron(text);
  return 'cron' in parsed ? lastTimeOf(parsed.cron, wallMs) : undefined;
}

function wallOf(timeZone: string, nowMs: number): WallMs {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone,
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', hourCycle: 'h23' },
  }).formatToParts(nowMs);
  const of = (type: string): number => Number(parts.find((part) => part.type === type)?.value);
  return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'));
}
