// The guards of an agent for guests on the networks of their hypervisors: one for guests of QEMU, each of which runs as its own user, and one for
// guests of libvirt, which share a user. Only root may load their rules.

import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { GuestUsers } from '../host/guest-user.ts';
import { ContainerGuard } from './container-guard.ts';
import { createHostGuard, type HostGuard } from './host-guard.ts';
import { hostGuardTable } from './host-guard-rules.ts';

export interface GuestGuards {
  readonly hostGuard?: HostGuard;
  readonly networkGuard?: HostGuard;
  readonly containerGuard?: ContainerGuard;
}

/** The settings of the agent that its guards depend on. */
interface GuardSettings {
  readonly dataDirectory: string;
  readonly hostPortsReached: readonly number[];
  readonly userPrivateAddresses: 'allow' | 'deny';
  readonly drivers: readonly string[];
  readonly containerNetwork?: string | undefined;
}

export function guestGuards(
  { dataDirectory, hostPortsReached, userPrivateAddresses, drivers, containerNetwork }: GuardSettings,
  {
    agentId,
    userId,
    users,
    clock,
    log,
  }: {
    readonly agentId: string;
    readonly userId: number;
    readonly users: GuestUsers | undefined;
    readonly clock: Clock;
    readonly log: Logger;
  },
): GuestGuards {
  const table = hostGuardTable(agentId);
  const shared = { privateAddresses: userPrivateAddresses, clock, log };
  return {
    ...(users === undefined
      ? {}
      : {
          hostGuard: createHostGuard({
            ...shared,
            table,
            users,
            ports: hostPortsReached,
            rulesFile: join(dataDirectory, 'host-guard.nft'),
          }),
        }),
    ...(userId === 0 && drivers.includes('libvirt')
      ? {
          networkGuard: createHostGuard({
            ...shared,
            table: `${table}_libvirt`,
            hostOpen: true,
            ports: [],
            rulesFile: join(dataDirectory, 'network-guard.nft'),
          }),
        }
      : {}),
    ...(containerNetwork === undefined
      ? {}
      : {
          containerGuard: new ContainerGuard({
            table: `${table}_containers`,
            ports: hostPortsReached,
            rulesFile: join(dataDirectory, 'container-guard.nft'),
            clock,
          }),
        }),
  };
}
