import { describe, expect, it } from 'vitest';
import { freeTarget, liveVolumes, volumeDisk, volumeDisks } from './domain-volumes.ts';
import { writeXml } from '../wire/xml.ts';

const volume = (digit: number, change = {}) => ({
  volumeId: `vol_${String(digit).repeat(26)}`,
  name: `data-${digit}`,
  path: `/srv/a & b/volumes/vol_${String(digit).repeat(26)}/disk.qcow2`,
  readOnly: false,
  ...change,
});
const domain = (...disks: string[]) => `<domain type='qemu' id='1'>
  <devices>
    <disk type='file' device='disk'>
      <source file='/var/lib/berth/libvirt/inst_00000000000000000000000001/disk.qcow2' index='1'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <disk type='network' device='disk'><target dev='vdc' bus='virtio'/></disk>
    ${disks.join('\n    ')}
  </devices>
</domain>`;

describe('a volume in the XML of a domain', () => {
  it('is a disk with its format, with nothing below it, found by its name', () => {
    expect(writeXml(volumeDisk(volume(1), 'vdb'))).toBe(
      [
        `<disk type='file' device='disk'><driver name='qemu' type='qcow2' discard='unmap'/>`,
        `<source file='/srv/a &amp; b/volumes/vol_${'1'.repeat(26)}/disk.qcow2'/><backingStore/>`,
        `<target dev='vdb' bus='virtio'/><serial>data-1</serial></disk>`,
      ].join(''),
    );
    expect(writeXml(volumeDisk(volume(1, { readOnly: true }), 'vdb'))).toContain(`<readonly/><serial>`);
  });

  it('has a place of its own', () => {
    const xml = domain(...volumeDisks([volume(1), volume(2)]).map(writeXml));
    expect(liveVolumes(xml).map(({ target }) => target)).toEqual(['vdb', 'vdc']);
    expect(freeTarget(domain())).toBe('vdb');
    expect(freeTarget(domain(writeXml(volumeDisk(volume(1), 'vdb'))))).toBe('vdd'); // vdc is somebody else's
    const all = 'bdefghijklmnopqrstuvwxyz'.split('').map((letter) => writeXml(volumeDisk(volume(1), `vd${letter}`)));
    expect(freeTarget(domain(...all))).toBeUndefined();
  });

  it('is read back from a domain that runs, among other disks, with all that libvirt says of it', () => {
    const shown = `<disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/>
      <source file='/v/vol_${'3'.repeat(26)}/disk.qcow2' index='4'/>
      <target dev='vdb' bus='virtio'/>
      <readonly/>
      <serial>data-3</serial>
      <alias name='virtio-disk1'/>
    </disk>`;
    expect(liveVolumes(domain(shown))).toEqual([
      {
        volumeId: `vol_${'3'.repeat(26)}`,
        path: `/v/vol_${'3'.repeat(26)}/disk.qcow2`,
        readOnly: true,
        attached: true,
        target: 'vdb',
        xml: `<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/v/vol_${'3'.repeat(26)}/disk.qcow2' index='4'/><target dev='vdb' bus='virtio'/><readonly/><serial>data-3</serial><alias name='virtio-disk1'/></disk>`,
      },
    ]);
    expect(liveVolumes(domain())).toEqual([]);
  });
});
