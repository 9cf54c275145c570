// The faults: everything that goes wrong at a moment, as against the weather, which lasts. A new fault is one entry in the file of its
// subject. Scenarios draw the faults in this order, so a new entry has `drawnLast`: seeds that are known keep their runs.

import type { Fault } from './fault.ts';
import { driverFaults, guestFaults } from './guest-faults.ts';
import { hostFaults, laterHostFaults } from './host-faults.ts';
import { networkFaults } from './network-faults.ts';
import { peopleFaults } from './people-faults.ts';
import { laterServerFaults, serverFaults } from './server-faults.ts';
import { storeFaults } from './store-faults.ts';

const entries = [
  ...serverFaults,
  ...hostFaults,
  ...networkFaults,
  ...guestFaults,
  ...driverFaults,
  ...storeFaults,
  ...peopleFaults,
  ...laterServerFaults,
  ...laterHostFaults,
];

export type FaultKind = (typeof entries)[number]['kind'];

export const faults: readonly Fault<FaultKind>[] = entries;

export const faultKinds: readonly FaultKind[] = faults.map(({ kind }) => kind);
