// image: the image exists, is built for the host's processor, and the host's last attempt to fetch it did not fail. The
// host retries a failed fetch by itself; its next report makes it eligible again.

import { type HostPlugin, refuse } from '../../framework.ts';

export const image: HostPlugin = {
  name: 'image',
  summary: "the image exists, is made for the host's processor, and can be fetched there",
  dependsOn: 'host',
  prepare({ terms: { image } }, { hosts }) {
    if (image === undefined) return null;
    return {
      filter(slot) {
        if (image === null) return refuse('ImageMissing', 'the image has been deleted');
        const status = hosts[slot]?.status;
        const found = status?.architecture;
        if (found !== undefined && found !== image.architecture)
          return refuse('ArchitectureMismatch', `it is ${found}, the image is ${image.architecture}`);
        // Another key: the attempt was for an older version of the image.
        const tried = status?.images.find(({ name, key, problem }) => {
          return problem !== undefined && name === image.name && (key === undefined || key === image.key);
        });
        return tried
          ? refuse('ImageUnavailable', `it cannot fetch the image, and retries automatically: ${tried.problem}`)
          : null;
      },
    };
  },
};
