// What the ledger keeps of a guest that could not be created or started.

import { describeError } from '../../base/log.ts';
import type { Driver } from '../drivers/driver.ts';
import { DriverError } from '../host/driver-error.ts';
import type { GuestFailure, LedgerEntry } from '../ledger/ledger.ts';
import { isUnfinished } from './guest-state.ts';
import type { GuestParts } from './parts.ts';

/** Not a driver's code: this host has no such driver. */
export const driverMissing = 'DriverMissing';

export function fail({ ledger, log }: GuestParts, entry: LedgerEntry, failure: GuestFailure): void {
  log.warn('a guest failed', { instance: entry.assignment.instanceId, ...failure });
  ledger.setFailure(entry, failure);
}

/** A driver that recorded the failure reports it itself. */
export function failUnlessRecorded(parts: GuestParts, entry: LedgerEntry, driver: Driver, error: unknown): void {
  const { instanceId, incarnation } = entry.assignment;
  const guest = driver.guests().find((each) => each.instanceId === instanceId && each.incarnation === incarnation);
  if (guest?.state === 'failed' && !isUnfinished(guest)) return;
  fail(parts, entry, failureOf(error));
}

export function failureOf(error: unknown): GuestFailure {
  return { code: codeOf(error) ?? 'Internal', message: describeError(error) };
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof DriverError ? error.code : undefined;
}
