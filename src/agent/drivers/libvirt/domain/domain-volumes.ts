// Volumes in the XML of a domain: what Berth writes of them, and what it reads back. Pure. Nothing is left for libvirt to guess: the format
// is said, and that nothing lies below.

import type { GuestVolume } from '../../driver.ts';
import type { OpenVolume } from '../../guest-life/hypervisor.ts';
import { volumeSerial } from '../../guest-life/disk/volume-serial.ts';
import { element, elementsAt, readXml, writeXml, type XmlElement } from '../wire/xml.ts';

/** `target`: as `vdb`; libvirt tells disks of one domain apart by it, the guest calls them as it likes. */
export function volumeDisk(volume: GuestVolume, target: string): XmlElement {
  return element(
    'disk',
    { type: 'file', device: 'disk' },
    element('driver', { name: 'qemu', type: 'qcow2', discard: 'unmap' }),
    element('source', { file: volume.path }),
    element('backingStore'),
    element('target', { dev: target, bus: 'virtio' }),
    volume.readOnly ? element('readonly') : undefined,
    element('serial', {}, volumeSerial(volume)),
  );
}

/** The guest's own disk is `vda`. */
const targets = 'bcdefghijklmnopqrstuvwxyz'.split('').map((letter) => `vd${letter}`);

export function volumeDisks(volumes: readonly GuestVolume[]): XmlElement[] {
  return volumes.flatMap((volume, i) => {
    const target = targets[i];
    return target === undefined ? [] : [volumeDisk(volume, target)];
  });
}

/** Undefined: all are taken. */
export function freeTarget(xml: string): string | undefined {
  const taken = elementsAt(readXml(xml), 'devices', 'disk', 'target').map(({ attributes }) => attributes['dev']);
  return targets.find((target) => !taken.includes(target));
}

export interface LiveVolume extends OpenVolume {
  readonly target: string;
  /** The disk as libvirt knows it. */
  readonly xml: string;
}

/** Throws `XmlError`. */
export function liveVolumes(xml: string): LiveVolume[] {
  return elementsAt(readXml(xml), 'devices', 'disk').flatMap((disk) => {
    const path = elementsAt(disk, 'source')[0]?.attributes['file'];
    const target = elementsAt(disk, 'target')[0]?.attributes['dev'];
    const volumeId = /\/(vol_[0-9a-z]{26})\/[^/]*$/.exec(path ?? '')?.[1];
    if (path === undefined || target === undefined || volumeId === undefined) return [];
    const readOnly = elementsAt(disk, 'readonly').length > 0;
    return [{ volumeId, path, readOnly, attached: true, target, xml: writeXml(withoutBreaks(disk)) }];
  });
}

/** libvirt lays its XML out in lines, and a line break cannot be written. */
function withoutBreaks({ children, ...rest }: XmlElement): XmlElement {
  return {
    ...rest,
    children: children.flatMap((child): readonly (XmlElement | string)[] => {
      if (typeof child !== 'string') return [withoutBreaks(child)];
      return child.trim() === '' ? [] : [child];
    }),
  };
}
