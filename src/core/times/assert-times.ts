// Refuses times that cannot be: a time zone that is unknown, a cron text that names nothing.

import { ApiError } from '../../api/errors.ts';
import { lastTimeOf, parseCron } from './cron.ts';
import { wallOf } from './wall-clock.ts';

/** Throws `InvalidRequest` naming the field. */
export function assertTimeZone(timeZone: string, field: string): void {
  try {
    wallOf(timeZone, 0);
  } catch {
    // The only fault that it can have.
    refuse(field, `there is no time zone "${timeZone}"; write UTC, or one as Europe/Berlin`);
  }
}

/** Throws `InvalidRequest` naming the field. */
export function assertCron(text: string, field: string): void {
  const parsed = parseCron(text);
  if ('fault' in parsed) return refuse(field, parsed.fault);
  if (lastTimeOf(parsed.cron, Date.UTC(2033, 0)) === undefined) refuse(field, `"${text}" names no day that there is`);
}

function refuse(field: string, message: string): never {
  throw new ApiError('InvalidRequest', `${field}: ${message}`, { field });
}
