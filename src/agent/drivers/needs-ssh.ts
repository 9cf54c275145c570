// Said of a wish that the host cannot fulfil, and ssh can, where the guest has a server. Clients learn it as the reason `NeedsSsh`.

import { DriverError } from './driver.ts';

export class NeedsSsh extends DriverError {
  override name = 'NeedsSsh';
  constructor(message: string, cause?: unknown) {
    super('NotPossible', message, cause);
  }
}
