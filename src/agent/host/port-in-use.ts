// The error for a port of this host that cannot be published, because something else has it.

import type { GuestPort } from '../../api/agent-protocol.ts';
import { DriverError } from './driver-error.ts';

/** `holder`: the id of the instance that has the port; absent: another program has it. */
export function portInUse(instanceId: string, port: GuestPort, bindAddress: string, holder?: string): DriverError {
  const by = holder === undefined ? 'another program' : holder === instanceId ? 'the same guest' : `guest ${holder}`;
  return new DriverError(
    'PortInUse',
    `cannot publish port ${port.guestPort} of ${instanceId}: ${bindAddress}:${port.hostPort}/${port.protocol} is in use by ${by}; choose another host port, or 0 for any`,
  );
}
