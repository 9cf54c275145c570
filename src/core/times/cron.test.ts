import { describe, expect, it } from 'vitest';
import { lastTimeOf, nextTimeOf, parseCron } from './cron.ts';

const wall = (text: string): number => Date.parse(`${text}Z`);

describe('the newest time that a cron text names', () => {
  it.each([
    ['0 8 * * *', '2026-11-26T08:00', '2026-11-26T08:00'],
    ['0 8 * * *', '2026-11-26T07:59', '2026-11-25T08:00'],
    ['*/15 9-17 * * 1-5', '2026-11-28T12:00', '2026-11-27T17:45'], // a Saturday
    ['30 6 1 * *', '2026-11-26T00:00', '2026-11-01T06:30'],
    ['0 0 29 2 *', '2026-11-26T00:00', '2024-02-29T00:00'],
    ['0 12 * * 0,7', '2026-11-26T00:00', '2026-11-22T12:00'],
    ['0 0 1 * 3', '2026-11-26T12:00', '2026-11-25T00:00'], // the first, or any Wednesday
  ])('%s at %s is %s', (text, nowText, expected) => {
    const parsed = parseCron(text);
    if ('fault' in parsed) throw new Error(parsed.fault);
    expect(lastTimeOf(parsed.cron, wall(nowText))).toBe(wall(expected));
  });

  it.each([
    '0 8 * *',
    '60 8 * * *',
    '0 24 * * *',
    '0 8 0 * *',
    '5-3 * * * *',
    '*-3 * * * *',
    '*/0 * * * *',
    'x * * * *',
  ])('refuses %s', (text) => {
    expect(parseCron(text)).toHaveProperty('fault');
  });
});

describe('the next time that a cron text names', () => {
  it.each([
    ['0 8 * * *', '2026-11-26T08:00', '2026-11-27T08:00'],
    ['0 8 * * *', '2026-11-26T07:59', '2026-11-26T08:00'],
    ['*/15 9-17 * * 1-5', '2026-11-28T12:00', '2026-11-30T09:00'], // a Saturday
    ['30 6 1 * *', '2026-11-26T00:00', '2026-12-01T06:30'],
    ['0 0 29 2 *', '2026-11-26T00:00', '2028-02-29T00:00'],
  ])('%s after %s is %s', (text, nowText, expected) => {
    const parsed = parseCron(text);
    if ('fault' in parsed) throw new Error(parsed.fault);
    expect(nextTimeOf(parsed.cron, wall(nowText))).toBe(wall(expected));
  });
});
