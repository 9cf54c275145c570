// The serial number by which a guest finds a volume: /dev/disk/by-id/virtio-SERIAL. Pure.

import type { GuestVolume } from '../../driver.ts';

/** Of the virtio specification. */
const serialBytesMax = 20;

/** Its name; the end of its id where the name is too long to be one. */
export function volumeSerial({ name, volumeId }: Pick<GuestVolume, 'name' | 'volumeId'>): string {
  return Buffer.byteLength(name) <= serialBytesMax ? name : volumeId.slice(-serialBytesMax);
}
