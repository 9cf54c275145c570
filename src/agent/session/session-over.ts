// Which errors end a session.

import { ApiError } from '../../api/errors.ts';

export class SessionOver extends Error {
  override name = 'SessionOver';
}

/** The host registered again, or was removed from the fleet: only a new session helps. */
export function isSessionOver(error: unknown): boolean {
  return (
    error instanceof SessionOver ||
    (error instanceof ApiError && (error.code === 'StaleEpoch' || error.code === 'NotFound'))
  );
}
