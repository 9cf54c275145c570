// offers: an instance with health checks or mounts goes to a host whose agent and driver have them. The agent says so itself: one of an
// earlier version does not know such assignments, and would take none at all.

import { driverFacts } from '../../../../api/driver-facts.ts';
import { containerDriver } from '../../../../api/container-image.ts';
import { type HostPlugin, refuse } from '../../framework.ts';
import { usualDriver, wantedDriver } from '../../wanted-driver.ts';

export const offers: HostPlugin = {
  name: 'offers',
  summary: 'the host has an agent and a driver that can make the checks and mounts of the instance',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const { needs } = terms;
    if (needs === undefined) return null;
    return {
      filter(slot) {
        const host = hosts[slot];
        if (!host) return null;
        const { drivers } = host.status;
        const wanted = wantedDriver(terms) ?? usualDriver(drivers);
        const driver = drivers.find(({ name }) => name === wanted);
        const missing = driver && needs.find((each) => driver.offers?.includes(each) !== true);
        if (driver === undefined || missing === undefined) return null;
        const what = words[missing] ?? `${missing} checks`;
        const able =
          missing === 'mounts'
            ? driver.name === containerDriver
            : missing === 'migration' || missing === 'resize'
              ? driverFacts.find(({ name }) => name === driver.name)?.migrates === true
              : driverFacts.find(({ name }) => name === driver.name)?.checks.includes(missing) === true;
        return refuse(
          'OffersMissing',
          able
            ? `its agent does not know ${what} of its driver ${driver.name}; update the agent`
            : `its driver ${driver.name} has no ${what}`,
        );
      },
    };
  },
};

const words: Readonly<Record<string, string>> = {
  mounts: 'mounts of containers',
  migration: 'moves',
  resize: 'resizes',
};
