// The published host ports of each guest. A port belongs to one guest from `reserve` to `release`, so two guests never race for a port. Ports of
// other programs are found by trying to bind.

import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { GuestPort } from '../../../../api/agent-protocol.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { portInUse } from '../../../host/port-in-use.ts';

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

export interface PortBook {
  /** Every `hostPort` 0 becomes a free port. Throws `PortInUse` and then holds nothing for this guest. */
  reserve(instanceId: string, wanted: readonly GuestPort[]): Promise<GuestPort[]>;
  /** Records the ports of a guest that an earlier run of the agent created. */
  adopt(instanceId: string, ports: readonly GuestPort[]): void;
  release(instanceId: string): void;
}

export function createPortBook(options: { readonly bindAddress: string; readonly range: PortRange }): PortBook {
  const holders = new Map<string, string>(); // "tcp/8080" -> instance id

  const release = (instanceId: string): void => {
    for (const [port, holder] of holders) if (holder === instanceId) holders.delete(port);
  };

  /** Holds the port before the first await, so that the search for another guest skips it. */
  const take = async (instanceId: string, port: GuestPort): Promise<boolean> => {
    const name = portName(port);
    if (holders.has(name)) return false;
    holders.set(name, instanceId);
    if (await canBind(port, options.bindAddress)) return true;
    holders.delete(name);
    return false;
  };

  const takeAny = async (instanceId: string, wanted: GuestPort): Promise<GuestPort> => {
    const { first, last } = options.range;
    const size = last - first + 1;
    const start = hash(`${instanceId}/${wanted.protocol}/${wanted.guestPort}`) % size;
    for (let i = 0; i < size; i++) {
      const port = { ...wanted, hostPort: first + ((start + i) % size) };
      if (await take(instanceId, port)) return port;
    }
    throw new DriverError(
      'PortInUse',
      `cannot publish port ${wanted.guestPort} of ${instanceId}: no port from ${first} to ${last} is free; widen the agent's port range`,
    );
  };

  return {
    release,
    adopt(instanceId, ports) {
      for (const port of ports) holders.set(portName(port), instanceId);
    },
    async reserve(instanceId, wanted) {
      release(instanceId);
      const reserved: GuestPort[] = [];
      try {
        for (const port of wanted) {
          if (port.hostPort === 0) reserved.push(await takeAny(instanceId, port));
          else if (await take(instanceId, port)) reserved.push(port);
          else throw portInUse(instanceId, port, options.bindAddress, holders.get(portName(port)));
        }
        return reserved;
      } catch (error) {
        release(instanceId);
        throw error;
      }
    },
  };
}

const portName = (port: GuestPort): string => `${port.protocol}/${port.hostPort}`;

function canBind(port: GuestPort, address: string): Promise<boolean> {
  return new Promise((resolve) => {
    if (port.protocol === 'udp') {
      const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
      socket.once('error', () => {
        socket.close();
        resolve(false);
      });
      socket.bind({ port: port.hostPort, address, exclusive: true }, () => socket.close(() => resolve(true)));
    } else {
      const server = createServer();
      server.once('error', () => resolve(false));
      server.listen({ port: port.hostPort, host: address, exclusive: true }, () => server.close(() => resolve(true)));
    }
  });
}

/** FNV-1a: where a search begins, so that a guest tends to get the same port again. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}
