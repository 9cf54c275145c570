// runs: an instance with a program to run goes to a host whose driver can give it one.

import { driverFacts } from '../../../../api/driver-facts.ts';
import { type HostPlugin, refuse } from '../../framework.ts';
import { usualDriver, wantedDriver } from '../../wanted-driver.ts';

const able: ReadonlySet<string> = new Set(driverFacts.flatMap(({ name, runs: can }) => (can ? [name] : [])));

export const runs: HostPlugin = {
  name: 'runs',
  summary: 'the host has a driver whose guests can run the program of a job',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    if (terms.runs === undefined) return null;
    return {
      filter(slot) {
        const host = hosts[slot];
        if (!host) return null;
        const driver = wantedDriver(terms) ?? usualDriver(host.status.drivers);
        return driver === undefined || able.has(driver)
          ? null
          : refuse('RunsUnsupported', `guests of its driver ${driver} cannot run the program of a job`);
      },
    };
  },
};
