// A refusal that tells the caller to use ssh.

import { DriverError } from '../host/driver-error.ts';

/** The host cannot do it, and ssh can, where the guest has a server. */
export class NeedsSsh extends DriverError {
  override name = 'NeedsSsh';
  constructor(message: string, cause?: unknown) {
    super('NotPossible', message, cause);
  }
}
