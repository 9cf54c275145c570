// The errors that several of the driver's operations end with.

import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { diskFull } from './disk/disk.ts';

export const noSuchGuest = (verb: string, instanceId: string): DriverError =>
  new DriverError('NoSuchGuest', `cannot ${verb} ${instanceId}: there is no such guest on this host`);

/** Whatever is there of a damaged guest, its disk above all, may be all that its owner has. */
export const inTheWay = (verb: string, instanceId: string): DriverError =>
  new DriverError('Internal', `cannot ${verb} ${instanceId}: the record of the guest that is here is damaged`);

export function throwIfAborted(signal: AbortSignal, instanceId: string): void {
  if (signal.aborted) throw new DriverError('Aborted', `the creation of ${instanceId} was given up`);
}

export function asDriverError(error: unknown, what: string, directory: string): DriverError {
  if (error instanceof DriverError) return error;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT') return diskFull(what, directory);
  return new DriverError('Internal', `${what}: ${describeError(error)}`, error);
}
