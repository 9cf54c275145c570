// image-locality: a host that has the image starts the guest sooner. Worth a tenth of the difference between an empty
// and a full host.

import type { HostPlugin } from '../../framework.ts';

const pointsForImage = 10;

export const imageLocality: HostPlugin = {
  name: 'image-locality',
  summary: 'the host has the image already',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const wanted = terms.image;
    if (!wanted) return null;
    return {
      score(slot) {
        const found = hosts[slot]?.status.images.find(({ name }) => name === wanted.name);
        const here = found && found.problem === undefined && (found.key === undefined || found.key === wanted.key);
        return here ? pointsForImage : 0;
      },
    };
  },
};
