// The images of a host whose guests are all pretended: each is there as soon as it is wanted. Nothing is fetched and no file is made.

import { createHash } from 'node:crypto';
import { imageKey } from '../../api/resources/image.ts';
import type { ImageCache } from './image-cache.ts';

/** The digest is of the image's key: the same on every such host, another one for other bytes. */
export function pretendedImages(): ImageCache {
  const digestByName = new Map<string, string>();
  return {
    async ensure(name, image) {
      const digest = `sha256:${createHash('sha256').update(imageKey(image)).digest('hex')}`;
      digestByName.set(name, digest);
      return { path: '/dev/null', format: 'raw', digest, virtualSizeBytes: 0 };
    },
    async list() {
      return [...digestByName].map(([name, digest]) => ({ name, digest, sizeBytes: 0 }));
    },
  };
}
