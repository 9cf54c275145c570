// image: there is such an image, and it is made for the host's processor.

import { fits, type Plugin, refuse } from '../framework.ts';

export const image: Plugin = {
  name: 'image',
  filter({ host }, request) {
    if (!request.image) return refuse('ImageMissing', 'the image has been deleted');
    const { architecture } = host.value.status;
    const wanted = request.image.spec.architecture;
    if (architecture === undefined || architecture === wanted) return fits;
    return refuse('ArchitectureMismatch', `it is ${architecture}, the image is ${wanted}`);
  },
};
