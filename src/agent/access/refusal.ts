// Errors of this host, as the control plane and its client see them. An unexpected error is logged as well.

import { ApiError } from '../../api/errors.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { DriverError } from '../host/driver-error.ts';
import { NeedsSsh } from '../drivers/needs-ssh.ts';
import { type NameOf, named } from '../host/named.ts';

/** `nameOf`: whose id is in a message is called by its name. */
export function refusalOf(error: unknown, log: Logger, nameOf: NameOf = () => undefined): ApiError {
  const refusal = asApiError(error, log);
  const message = named(refusal.message, nameOf);
  if (message === refusal.message) return refusal;
  return new ApiError(refusal.code, message, {
    cause: error,
    ...(refusal.field === undefined ? {} : { field: refusal.field }),
    ...(refusal.details === undefined ? {} : { details: refusal.details }),
  });
}

function asApiError(error: unknown, log: Logger): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DriverError && error.code === 'NoSuchGuest') return new ApiError('NotFound', error.message);
  if (error instanceof NeedsSsh) return new ApiError('Conflict', error.message, { details: { reason: 'NeedsSsh' } });
  if (error instanceof DriverError && error.code === 'NotPossible') return new ApiError('Conflict', error.message);
  if (error instanceof DriverError && error.code === 'Aborted') return new ApiError('Conflict', error.message);
  if (error instanceof DriverError && error.code === 'DiskFull') return new ApiError('StoreFull', error.message);
  log.error('cannot answer the control plane', { error: describeError(error) });
  return new ApiError('Internal', `this host cannot answer: ${describeError(error)}`);
}
