// The error for a port of this host that cannot be published, because something else has it.

import type { GuestPort } from '../../api/agent-protocol.ts';
import { DriverError } from './driver-error.ts';

export class PortInUse extends DriverError {
  readonly port: GuestPort;

  constructor(port: GuestPort, message: string) {
    super('PortInUse', message);
    this.port = port;
  }
}

/** `holder`: the id of the instance that has the port; absent: another program has it. */
export function portInUse(instanceId: string, port: GuestPort, bindAddress: string, holder?: string): PortInUse {
  const by = holder === undefined ? 'another program' : holder === instanceId ? 'the same guest' : `guest ${holder}`;
  return new PortInUse(
    port,
    `cannot publish port ${port.guestPort} of ${instanceId}: ${bindAddress}:${port.hostPort}/${port.protocol} is in use by ${by}; choose another host port, or 0 for any`,
  );
}
