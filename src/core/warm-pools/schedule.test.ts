import { describe, expect, it } from 'vitest';
import { scheduledSize } from './schedule.ts';

const wall = (text: string): number => Date.parse(`${text}Z`);

describe('the size of a warm pool by its schedule', () => {
  const windows = [
    { from: '0 8 * * 1-5', to: '0 18 * * 1-5', size: 10 },
    { from: '0 22 * * *', to: '0 2 * * *', size: 0 },
  ];
  it.each([
    ['Thursday morning in Berlin', 'Europe/Berlin', '2026-11-26T07:00', 10],
    ['a minute before', 'Europe/Berlin', '2026-11-26T06:59', 3],
    ['Thursday evening', 'Europe/Berlin', '2026-11-26T17:00', 3],
    ['Saturday', 'Europe/Berlin', '2026-11-28T10:00', 3],
    ['at night, over midnight', 'Europe/Berlin', '2026-11-26T00:30', 0],
    ['the same hour in summer', 'Europe/Berlin', '2026-07-02T06:00', 10],
    ['in UTC', 'UTC', '2026-11-26T08:00', 10],
  ])('%s', (_, timeZone, utc, size) => {
    expect(scheduledSize({ size: 3, schedule: { timeZone, windows } }, wall(utc))).toBe(size);
  });
});
