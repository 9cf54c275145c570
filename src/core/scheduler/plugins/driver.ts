// driver: the host has a working driver, and the one that instance or image name.

import { fits, type Plugin, refuse } from '../framework.ts';

export const driver: Plugin = {
  name: 'driver',
  filter({ host }, request) {
    const { drivers } = host.value.status;
    if (request.driver === undefined) {
      return drivers.some((d) => d.available) ? fits : refuse('DriverMissing', 'none of its drivers works');
    }
    const wanted = drivers.find((d) => d.name === request.driver);
    if (!wanted) return refuse('DriverMissing', `it has no driver ${request.driver}`);
    return wanted.available
      ? fits
      : refuse(
          'DriverUnavailable',
          `its driver ${request.driver} does not work: ${wanted.reason ?? 'no reason given'}`,
        );
  },
};
