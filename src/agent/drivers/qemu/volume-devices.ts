// A volume for QEMU: a node that opens its file, and a device that shows it to the guest. The same on the command line and
// while the guest runs. Pure.

import type { GuestVolume } from '../driver.ts';
import { volumeSerial } from '../guest-life/disk/volume-serial.ts';

/** At most 31 characters, QEMU's limit: an id of a volume has 30. */
export const nodeName = (volumeId: string): string => volumeId;
export const deviceId = (volumeId: string): string => `dev-${volumeId}`;

/** Of its own format, which is never guessed, and locked: no other QEMU and no qemu-img can change it meanwhile. */
export function volumeNode({ volumeId, path, readOnly }: GuestVolume) {
  return {
    driver: 'qcow2',
    'node-name': nodeName(volumeId),
    'read-only': readOnly,
    discard: 'unmap',
    file: {
      driver: 'file',
      'node-name': `f${volumeId}`,
      filename: path,
      'read-only': readOnly,
      locking: 'on',
      discard: 'unmap',
    },
  } as const;
}

/** `bus`: not the root bus. */
export function volumeDevice(volume: GuestVolume, bus?: string) {
  const { volumeId, slot } = volume;
  return {
    driver: 'virtio-blk-pci',
    id: deviceId(volumeId),
    drive: nodeName(volumeId),
    serial: volumeSerial(volume),
    ...(bus === undefined ? {} : { bus }),
    ...(slot === undefined ? {} : { addr: `0x${slot.toString(16)}` }),
  } as const;
}
