// Times as cron has them: minute, hour, day of the month, month, weekday (0 and 7: Sunday). Pure, on the calendar of a wall clock: which
// time zone that clock shows is the caller's.

export interface Cron {
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  /** Days of the month and weekdays are both limited: then one of them is enough. */
  readonly eitherDay: boolean;
}

/** What a wall clock shows, as milliseconds since 1970 of a clock in UTC that shows the same. */
export type WallMs = number;

const dayMs = 86_400_000;
/** A leap day comes back after eight years at most. */
const daysMax = 8 * 366 + 1;

const ranges = [
  ['minute', 0, 59],
  ['hour', 0, 23],
  ['day of the month', 1, 31],
  ['month', 1, 12],
  ['weekday', 0, 7],
] as const;

/** The parsed text, or what is wrong with it. */
export function parseCron(text: string): { readonly cron: Cron } | { readonly fault: string } {
  const words = text.trim().split(/ +/);
  if (words.length !== ranges.length)
    return { fault: `"${text}" has ${words.length} fields; write five: minute hour day month weekday` };
  const sets: Set<number>[] = [];
  for (const [i, [what, min, max]] of ranges.entries()) {
    const set = valuesOf(words[i] ?? '', min, max);
    if (set === undefined) return { fault: `"${words[i]}" is no ${what}; write *, ${min} to ${max}, 1-5, */5 or 1,3` };
    sets.push(set);
  }
  const [minutes = none, hours = none, days = none, months = none, weekdays = new Set<number>()] = sets;
  if (weekdays.has(7)) weekdays.add(0);
  const eitherDay = !(words[2] ?? '').startsWith('*') && !(words[4] ?? '').startsWith('*');
  return { cron: { minutes, hours, days, months, weekdays, eitherDay } };
}

const none: ReadonlySet<number> = new Set();

function valuesOf(word: string, min: number, max: number): Set<number> | undefined {
  const values = new Set<number>();
  for (const part of word.split(',')) {
    const [, from = '', to, step = '1'] = /^(\*|\d{1,2})(?:-(\d{1,2}))?(?:\/(\d{1,2}))?$/.exec(part) ?? [];
    if (from === '' || (from === '*' && to !== undefined)) return undefined;
    const first = from === '*' ? min : Number(from);
    const last = from === '*' ? max : to === undefined ? first : Number(to);
    const by = Number(step);
    if (first < min || last > max || first > last || by < 1) return undefined;
    for (let value = first; value <= last; value += by) values.add(value);
  }
  return values;
}

/** The newest time that it names up to `wallMs`; undefined: none in eight years. */
export function lastTimeOf(cron: Cron, wallMs: WallMs): WallMs | undefined {
  const today = Math.floor(wallMs / dayMs) * dayMs;
  for (let i = 0; i < daysMax; i++) {
    const day = today - i * dayMs;
    if (!hasDay(cron, new Date(day))) continue;
    const minuteMax = i === 0 ? Math.floor((wallMs - today) / 60_000) : 1_439;
    const minute = lastMinuteOf(cron, minuteMax);
    if (minute !== undefined) return day + minute * 60_000;
  }
  return undefined;
}

/** The first time that it names after `wallMs`; undefined: none in eight years. */
export function nextTimeOf(cron: Cron, wallMs: WallMs): WallMs | undefined {
  const today = Math.floor(wallMs / dayMs) * dayMs;
  for (let i = 0; i < daysMax; i++) {
    const day = today + i * dayMs;
    if (!hasDay(cron, new Date(day))) continue;
    const minuteMin = i === 0 ? Math.floor((wallMs - today) / 60_000) + 1 : 0;
    const minute = firstMinuteOf(cron, minuteMin);
    if (minute !== undefined) return day + minute * 60_000;
  }
  return undefined;
}

function hasDay({ months, days, weekdays, eitherDay }: Cron, date: Date): boolean {
  if (!months.has(date.getUTCMonth() + 1)) return false;
  const [inMonth, inWeek] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())];
  return eitherDay ? inMonth || inWeek : inMonth && inWeek;
}

/** Of the day, up to `minuteMax`. */
function lastMinuteOf({ hours, minutes }: Cron, minuteMax: number): number | undefined {
  for (let minute = minuteMax; minute >= 0; minute--)
    if (hours.has(Math.floor(minute / 60)) && minutes.has(minute % 60)) return minute;
  return undefined;
}

function firstMinuteOf({ hours, minutes }: Cron, minuteMin: number): number | undefined {
  for (let minute = minuteMin; minute < 1_440; minute++)
    if (hours.has(Math.floor(minute / 60)) && minutes.has(minute % 60)) return minute;
  return undefined;
}
