// The guards that an agent has for guests on networks of their hypervisors: for QEMU's, each of which has a user of its own, and for libvirt's, which have
// one together. Only root may make their rules.

import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { AgentConfig } from '../config.ts';
import type { GuestUsers } from '../host/guest-user.ts';
import { createHostGuard, type HostGuard } from './host-guard.ts';
import { hostGuardTable } from './host-guard-rules.ts';

export interface GuestGuards {
  readonly hostGuard?: HostGuard;
  readonly networkGuard?: HostGuard;
}

export function guestGuards(
  { dataDirectory, hostPortsReached, userPrivateAddresses, drivers }: AgentConfig,
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
  };
}
