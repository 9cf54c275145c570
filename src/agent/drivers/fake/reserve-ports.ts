// The host ports of a new guest: those that its spec names, and the first free ones of the range for the others.

import type { GuestPort } from '../../../api/agent-protocol.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { FakeGuest } from './fake-guest.ts';
import type { Hands } from './hands.ts';

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

export function reservePorts(
  { world, host }: Pick<Hands, 'world' | 'host'>,
  guest: FakeGuest,
  { wanted, range }: { readonly wanted: readonly GuestPort[]; readonly range: PortRange },
): GuestPort[] {
  const taken = new Set<number>();
  const isFree = (port: number): boolean => !taken.has(port) && !world.portTaken(host, port);
  return wanted.map((port) => {
    let { hostPort } = port;
    if (hostPort === 0) {
      hostPort = range.first;
      while (hostPort <= range.last && !isFree(hostPort)) hostPort++;
    }
    if (hostPort > range.last && port.hostPort === 0)
      throw portInUse(guest, port, `no port from ${range.first} to ${range.last} is free`);
    if (!isFree(hostPort)) throw portInUse(guest, port, `port ${hostPort} is in use`);
    taken.add(hostPort);
    return { ...port, hostPort };
  });
}

const portInUse = (guest: FakeGuest, port: GuestPort, reason: string): DriverError =>
  new DriverError('PortInUse', `cannot publish port ${port.guestPort} of ${guest.instanceId}: ${reason}`);
