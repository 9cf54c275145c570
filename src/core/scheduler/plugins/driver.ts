// driver: the host has a working driver, and the one that instance or image name.

import { type HostPlugin, refuse } from '../framework.ts';

export const driver: HostPlugin = {
  name: 'driver',
  summary: 'the host has a working driver, and the one that instance or image name',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const wanted = terms.driver;
    return {
      filter(slot) {
        const drivers = hosts[slot]?.status.drivers ?? [];
        if (wanted === undefined)
          return drivers.some(({ available }) => available)
            ? null
            : refuse('DriverMissing', 'none of its drivers works');
        const found = drivers.find(({ name }) => name === wanted);
        if (!found) return refuse('DriverMissing', `it has no driver ${wanted}`);
        return found.available
          ? null
          : refuse('DriverUnavailable', `its driver ${wanted} does not work: ${found.reason ?? 'no reason given'}`);
      },
    };
  },
};
