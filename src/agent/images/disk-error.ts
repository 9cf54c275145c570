// Turns an error of the file system into the driver's error: a full disk, or an internal fault.

import { assert } from '../../base/assert.ts';
import { describeError } from '../../base/log.ts';
import { DriverError } from '../host/driver-error.ts';

export function diskError(error: unknown, attempt: string): DriverError {
  if (error instanceof DriverError) return error;
  assert(error !== undefined, 'a failure has an error');
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG') {
    return new DriverError('DiskFull', `cannot ${attempt}: the disk is full; free some room and try again`, error);
  }
  return new DriverError('Internal', `cannot ${attempt}: ${describeError(error)}`, error);
}
