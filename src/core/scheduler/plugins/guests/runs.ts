// runs: an instance with a program to run goes to a host whose agent can give its guests one. The agent says so itself: one
// of an earlier version would start the guest without the program, and nothing would ever begin.

import { driverFacts } from '../../../../api/driver-facts.ts';
import { type HostPlugin, refuse } from '../../framework.ts';
import { usualDriver, wantedDriver } from '../../wanted-driver.ts';

const able: ReadonlySet<string> = new Set(driverFacts.flatMap(({ name, runs: can }) => (can ? [name] : [])));

export const runs: HostPlugin = {
  name: 'runs',
  summary: 'the host has an agent and a driver whose guests can run the program of a job',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    if (terms.runs === undefined) return null;
    return {
      filter(slot) {
        const host = hosts[slot];
        if (!host) return null;
        const { drivers } = host.status;
        const wanted = wantedDriver(terms) ?? usualDriver(drivers);
        const driver = drivers.find(({ name }) => name === wanted);
        if (driver === undefined || driver.runs === true) return null;
        return able.has(driver.name)
          ? refuse(
              'RunsUnsupported',
              `its agent cannot give guests of its driver ${driver.name} a program; update the agent`,
            )
          : refuse('RunsUnsupported', `guests of its driver ${driver.name} cannot run the program of a job`);
      },
    };
  },
};
