// volumes: the host is the one with the instance's volumes, and its driver supports volumes.

import { driverFacts } from '../../../../api/driver-facts.ts';
import { type HostPlugin, refuse } from '../../framework.ts';
import { usualDriver, wantedDriver } from '../../wanted-driver.ts';

const able: ReadonlySet<string> = new Set(driverFacts.flatMap(({ name, volumes }) => (volumes ? [name] : [])));

export const volumes: HostPlugin = {
  name: 'volumes',
  summary: "the host has the instance's volumes, and a driver that can attach them",
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const on = terms.volumesOn;
    if (on === undefined) return null;
    return {
      filter(slot) {
        const host = hosts[slot];
        if (!host) return null;
        if (on.some((name) => name !== host.metadata.name))
          return refuse(
            'VolumeElsewhere',
            on.length > 1
              ? `its volumes are on several hosts: ${on.join(', ')}`
              : `its volumes are on host ${on.join('')}`,
          );
        const driver = wantedDriver(terms) ?? usualDriver(host.status.drivers);
        return driver === undefined || able.has(driver)
          ? null
          : refuse('VolumesUnsupported', `its driver ${driver} has no volumes`);
      },
    };
  },
};
