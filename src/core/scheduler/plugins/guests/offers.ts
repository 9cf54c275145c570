// offers: an instance with health checks or mounts goes to a host whose agent and driver have them. The agent says so itself: one of an
// earlier version does not know such assignments, and would take none at all.

import type { LiveKind } from '../../../../api/resources/host.ts';
import { driverFacts } from '../../../../api/driver-facts.ts';
import { containerDriver } from '../../../../api/container-image.ts';
import { type HostPlugin, refuse } from '../../framework.ts';
import { usualDriver, wantedDriver } from '../../wanted-driver.ts';

export const offers: HostPlugin = {
  name: 'offers',
  summary: 'the host has an agent and a driver that can make the checks and mounts of the instance',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const { needs, like } = terms;
    if (needs === undefined) return null;
    return {
      filter(slot) {
        const host = hosts[slot];
        if (!host) return null;
        const { drivers } = host.status;
        const wanted = wantedDriver(terms) ?? usualDriver(drivers);
        const driver = drivers.find(({ name }) => name === wanted);
        const missing = driver && needs.find((each) => driver.offers?.includes(each) !== true);
        if (driver !== undefined && like !== undefined && missing === undefined) return differenceOf(driver.live, like);
        if (driver === undefined || missing === undefined) return null;
        const what = words[missing] ?? `${missing} checks`;
        const able =
          missing === 'mounts' || missing === 'filesystems'
            ? driver.name === containerDriver
            : missing === 'migration' || missing === 'resize' || missing === 'save'
              ? driverFacts.find(({ name }) => name === driver.name)?.migrates === true
              : driverFacts.find(({ name }) => name === driver.name)?.checks.includes(missing) === true;
        return refuse(
          'OffersMissing',
          able
            ? `its agent does not know ${what} of its driver ${driver.name}; ${missing === 'filesystems' ? 'update it, and run it as root' : 'update the agent'}`
            : `its driver ${driver.name} has no ${what}`,
        );
      },
    };
  },
};

/** QEMU itself notices some differences, and others only when the guest fails. */
function differenceOf(
  live: LiveKind | undefined,
  { machine, cpu, network }: LiveKind,
): ReturnType<typeof refuse> | null {
  if (live === undefined)
    return refuse(
      'LiveUnable',
      'guests cannot move there while they run: other hosts cannot connect to it, or its driver cannot',
    );
  if (live.network !== network)
    return refuse('OtherNetwork', `its guests are on the network ${live.network}, not ${network}`);
  if (live.machine !== machine) return refuse('OtherMachine', `its machines are ${live.machine}, not ${machine}`);
  if (live.cpu !== cpu) return refuse('OtherCpu', `its guests see the processor ${live.cpu}, not ${cpu}`);
  return null;
}

const words: Readonly<Record<string, string>> = {
  mounts: 'mounts of containers',
  migration: 'moves',
  resize: 'resizes',
  filesystems: 'volumes for containers',
};
