import { describe, expect, it } from 'vitest';
import { lastScheduledTime, nextScheduledTimeMs } from './scheduled-times.ts';

const utc = (text: string): number => Date.parse(`${text}Z`);
const berlin = (cron: string) => ({ cron, timeZone: 'Europe/Berlin' });

describe('the times of a schedule', () => {
  it.each([
    ['in winter', '0 3 * * *', '2026-11-26T02:00', '2026-11-26T02:00', '202611260300'],
    ['in summer', '0 3 * * *', '2026-07-02T12:00', '2026-07-02T01:00', '202607020300'],
    ['seconds do not count', '*/5 * * * *', '2026-11-26T02:04:59', '2026-11-26T02:00', '202611260300'],
  ])('the newest %s', (_, cron, now, atText, stamp) => {
    expect(lastScheduledTime(berlin(cron), utc(now))).toMatchObject({ atMs: utc(atText), stamp });
  });

  it.each([
    ['tomorrow', '0 3 * * *', '2026-11-26T12:00', '2026-11-27T02:00'],
    ['after clocks go back', '0 12 * * *', '2026-10-24T12:00', '2026-10-25T11:00'],
    ['after clocks go forward', '0 12 * * *', '2026-03-28T12:00', '2026-03-29T10:00'],
    ['in the hour that is skipped', '30 2 * * *', '2026-03-29T00:00', '2026-03-29T01:30'],
  ])('the next %s', (_, cron, now, expected) => {
    expect(nextScheduledTimeMs(berlin(cron), utc(now))).toBe(utc(expected));
  });

  /** Clocks in Berlin go back from 3:00 to 2:00 at 1:00 UTC. */
  const numberAt = (cron: string, text: string) =>
    lastScheduledTime(berlin(cron), utc(`2026-10-25T${text}`))?.number ?? 0;

  it('a time of day comes once while clocks go back', () => {
    expect(numberAt('30 2 * * *', '00:30')).toBe(numberAt('30 2 * * *', '01:30'));
  });

  it('a time of each hour comes in both hours', () => {
    expect(numberAt('30 * * * *', '00:30')).toBeLessThan(numberAt('30 * * * *', '01:30'));
  });
});
