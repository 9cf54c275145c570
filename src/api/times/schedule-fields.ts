// Fields of schedules: the times of cron, and the time zone that they are in.

import { Type } from 'typebox';

export function CronTimes(description = 'as cron has it: minute hour day month weekday') {
  return Type.String({ minLength: 9, maxLength: 100, pattern: '^[0-9*,/ -]+$', description });
}

const timeZone = { minLength: 1, maxLength: 64, description: 'UTC, or a name as Europe/Berlin' } as const;

export const TimeZone = Type.String(timeZone);
export const TimeZoneOrUtc = Type.String({ default: 'UTC', ...timeZone });
