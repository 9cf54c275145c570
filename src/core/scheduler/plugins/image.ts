// image: there is such an image, and it is made for the host's processor.

import { type HostPlugin, refuse } from '../framework.ts';

export const image: HostPlugin = {
  name: 'image',
  summary: "the image exists and is made for the host's processor",
  dependsOn: 'host',
  prepare({ terms: { image } }, { hosts }) {
    if (image === undefined) return null;
    return {
      filter(slot) {
        if (image === null) return refuse('ImageMissing', 'the image has been deleted');
        const wanted = image.architecture;
        const found = hosts[slot]?.status.architecture;
        return found === undefined || found === wanted
          ? null
          : refuse('ArchitectureMismatch', `it is ${found}, the image is ${wanted}`);
      },
    };
  },
};
