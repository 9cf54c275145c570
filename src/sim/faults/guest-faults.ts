// Faults of guests and drivers.

import { type DriverErrorCode, driverErrorCodes } from '../../agent/host/driver-error.ts';
import { type Fault, guestFault, pick } from './fault.ts';

/** Codes that no driver returns for a failed step, and one that is handled like `HypervisorFailed`. */
const notDrawn: ReadonlySet<DriverErrorCode> = new Set([
  'NoSuchGuest',
  'NotPossible',
  'Aborted',
  'ContainerEngineFailed',
  'RepositoryUnavailable',
  'CommitNotFound',
  'RepositoryRefused',
  'GitMissing',
]);

export const guestFaults = [
  guestFault({
    kind: 'guest-crash',
    strike: ({ host, instanceId }, { on }) => on.world.crash(host, instanceId),
  }),
  guestFault({
    kind: 'guest-power-off',
    strike: ({ host, instanceId }, { on }) => on.world.powerOff(host, instanceId),
  }),
  guestFault({
    kind: 'guest-held', // suspended or resumed on the host, without the agent
    strike: (guest, { on }) => on.world.setSuspended(guest, guest.state === 'running'),
  }),
];

export const driverFaults = [
  {
    kind: 'driver-fails',
    mayFindNothing: true,
    strike({ prng, inject }) {
      const codes = driverErrorCodes.filter((each) => !notDrawn.has(each));
      const code = pick(codes, prng) ?? 'Internal';
      const step = pick(['pull', 'clone', 'start'] as const, prng) ?? 'start';
      inject({ do: 'fail', step, code }, `${step} ${code}`);
    },
  },
  {
    kind: 'driver-slow',
    mayFindNothing: true,
    strike: ({ prng, inject }) => inject({ do: 'slow', factor: prng.chance(1, 4) ? 16 : 2 }, 'a guest'),
  },
  {
    kind: 'guest-dies-early',
    mayFindNothing: true,
    strike: ({ prng, inject }) =>
      inject({ do: prng.chance(1, 2) ? 'crash' : 'power-off', afterMs: prng.below(5000) }, 'a guest'),
  },
  {
    kind: 'power-button-ignored',
    mayFindNothing: true,
    strike: ({ inject }) => inject({ do: 'ignore-power-button' }, 'a guest'),
  },
] as const satisfies readonly Fault[];
