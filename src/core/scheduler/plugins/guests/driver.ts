// driver: the host has a working driver, and the one that the instance or image names.

import { containerDriver } from '../../../../api/container-image.ts';
import { type HostPlugin, refuse } from '../../framework.ts';
import { wantedDriver } from '../../wanted-driver.ts';

export const driver: HostPlugin = {
  name: 'driver',
  summary: 'the host has a working driver, and the one that the instance or image names',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const wanted = wantedDriver(terms);
    // A container driver never takes a virtual machine, on any host.
    const fits = ({ name }: { readonly name: string }): boolean =>
      terms.image === undefined || name !== containerDriver;
    return {
      filter(slot) {
        const status = hosts[slot]?.status;
        if (status?.outside && terms.outside && wanted === undefined) return null; // no guest of ours starts there
        const drivers = status?.drivers ?? [];
        if (wanted === undefined)
          return drivers.some((each) => each.available && fits(each))
            ? null
            : drivers.some(({ available }) => available)
              ? refuse('DriverMissing', 'it runs containers only, and the image is of a virtual machine')
              : refuse('DriverMissing', 'none of its drivers works');
        const found = drivers.find(({ name }) => name === wanted);
        if (!found)
          return refuse(
            'DriverMissing',
            terms.driver === undefined
              ? `it has no driver ${wanted}, which the image of containers needs`
              : `it has no driver ${wanted}`,
          );
        return found.available
          ? null
          : refuse('DriverUnavailable', `its driver ${wanted} does not work: ${found.reason ?? 'no reason given'}`);
      },
    };
  },
};
