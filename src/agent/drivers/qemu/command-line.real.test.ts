import { describe, expect, it } from 'vitest';
import { guestUuid } from '../guest-life/guest-files.ts';
import { qemuArguments } from './command-line.ts';

const id = 'inst_00000000000000000000000001';
const machine = {
  instanceId: id,
  uuid: guestUuid(id, 1),
  cpus: 2,
  memoryMiB: 512,
  seeded: true,
  ports: [
    { guestPort: 22, hostPort: 20_022, protocol: 'tcp' },
    { guestPort: 53, hostPort: 20_053, protocol: 'udp' },
  ],
} as const;
const line = (change = {}, accelerator: 'kvm' | 'tcg' = 'tcg') =>
  qemuArguments({ ...machine, ...change }, { accelerator, bindAddress: '127.0.0.1' }).join(' ');

describe('QEMU’s command line', () => {
  it('publishes each port on the bind address', () => {
    expect(line()).toContain('-netdev user,id=net0,hostfwd=tcp:127.0.0.1:20022-:22,hostfwd=udp:127.0.0.1:20053-:53');
  });
  it('uses the tap that the host’s network has for it, and publishes nothing by itself', () => {
    const network = { kind: 'nat', tap: 'bt0123456789ab', macAddress: '02:00:00:00:00:01', address: '10.77.0.5' };
    expect(line({ network })).toContain('-netdev tap,id=net0,ifname=bt0123456789ab,script=no,downscript=no -device');
    expect(line({ network })).toContain('virtio-net-pci,netdev=net0,mac=02:00:00:00:00:01,');
    expect(line({ network })).not.toContain('hostfwd');
  });
  it('is sandboxed and takes nothing from configuration files', () => {
    expect(line()).toContain('-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny');
    expect(line()).toContain('-nodefaults -no-user-config');
  });
  it('is sandboxed as well as a user of its own, writes to a folder of that user alone and opens no tap', () => {
    const network = {
      kind: 'nat',
      tap: 'bt0123456789ab',
      macAddress: '02:00:00:00:00:01',
      address: '10.77.0.5',
    } as const;
    const host = { accelerator: 'tcg', bindAddress: '127.0.0.1', ownUser: true } as const;
    const words = qemuArguments({ ...machine, network }, host).join(' ');
    expect(words).toContain('-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny');
    for (const path of ['qemu.pid', 'qmp.sock', 'console.sock', 'vnc.sock', 'agent.sock'])
      expect(words).toContain(`run/${path}`);
    expect(words).toContain('-netdev tap,id=net0,fd=TAP-DESCRIPTOR -device');
    expect(words).not.toContain('-runas');
  });
  it('names every format and keeps image locks on', () => {
    expect(line()).toMatch(/"driver":"qcow2"[^]*"driver":"raw"/);
    expect(line()).toContain('"locking":"on"');
    expect(line()).not.toContain('-drive');
  });
  it.each([
    ['a BIOS', {}, 'pc,hpet=off', []],
    ['UEFI', { firmware: 'uefi' }, 'pc,hpet=off,pflash0=uefi-code,pflash1=uefi-variables', []],
    [
      'UEFI with secure boot',
      { firmware: 'uefi-secure-boot' },
      'q35,hpet=off,smm=on,pflash0=uefi-code,pflash1=uefi-variables',
      ['-global driver=cfi.pflash01,property=secure,value=on', '-device pcie-pci-bridge,id=volumes'],
    ],
  ] as const)('boots by %s', (_, change, machineType, more) => {
    expect(line(change)).toContain(`-machine ${machineType} -accel`);
    for (const words of more) expect(line(change)).toContain(words);
    expect(line(change).includes('OVMF_CODE_4M')).toBe('firmware' in change);
    expect(line(change).includes('uefi-vars.fd')).toBe('firmware' in change);
  });
  it('connects a TPM by a socket that no other process reaches', () => {
    expect(line({ tpm: true })).toContain('-chardev socket,id=tpm,fd=TPM-DESCRIPTOR -tpmdev emulator');
    expect(line()).not.toContain('tpm');
  });
  it('attaches the seed as a read-only IDE CD-ROM, if there is one', () => {
    expect(line()).toContain('-device ide-cd,bus=ide.1,drive=seed');
    expect(line({ seeded: false })).not.toContain('seed');
  });
  it('uses the accelerator it is told, without falling back to another', () => {
    expect(line({}, 'kvm')).toContain('-accel kvm -cpu host');
    expect(line({}, 'kvm')).not.toContain('tcg');
    expect(line({}, 'tcg')).not.toContain('kvm');
  });
  it('has its volumes as disks of their own, last, found by name, and locked', () => {
    const volume = { volumeId: `vol_${'1'.repeat(26)}`, name: 'data', path: '/a b/c,d/disk.qcow2', readOnly: false };
    const words = line({ volumes: [volume, { ...volume, volumeId: `vol_${'2'.repeat(26)}`, readOnly: true }] });
    expect(words.slice(words.indexOf('-device pvpanic'))).toBe(
      [
        '-device pvpanic',
        `-blockdev {"driver":"qcow2","node-name":"vol_${'1'.repeat(26)}","read-only":false,"discard":"unmap","file":{"driver":"file","node-name":"fvol_${'1'.repeat(26)}","filename":"/a b/c,d/disk.qcow2","read-only":false,"locking":"on","discard":"unmap"}}`,
        `-device {"driver":"virtio-blk-pci","id":"dev-vol_${'1'.repeat(26)}","drive":"vol_${'1'.repeat(26)}","serial":"data"}`,
        `-blockdev {"driver":"qcow2","node-name":"vol_${'2'.repeat(26)}","read-only":true,"discard":"unmap","file":{"driver":"file","node-name":"fvol_${'2'.repeat(26)}","filename":"/a b/c,d/disk.qcow2","read-only":true,"locking":"on","discard":"unmap"}}`,
        `-device {"driver":"virtio-blk-pci","id":"dev-vol_${'2'.repeat(26)}","drive":"vol_${'2'.repeat(26)}","serial":"data"}`,
      ].join(' '),
    );
  });
  it('has the disk with its program before its volumes, and two ports for the runner, if it has a program', () => {
    const volume = { volumeId: `vol_${'1'.repeat(26)}`, name: 'data', path: '/a', readOnly: false };
    const words = line({ runDisk: true, volumes: [volume] });
    expect(
      words.slice(words.indexOf('-device pvpanic'), words.indexOf(' -blockdev {"driver":"qcow2","node-name":"vol_')),
    ).toBe(
      [
        '-device pvpanic',
        '-blockdev {"node-name":"run-file","driver":"file","filename":"run.img","read-only":true}',
        '-blockdev {"node-name":"run","driver":"raw","file":"run-file","read-only":true}',
        '-device virtio-blk-pci,drive=run,serial=berth-run',
        '-chardev socket,id=run,path=run.sock,server=on,wait=off',
        '-device virtserialport,chardev=run,name=berth.run.0',
        '-chardev socket,id=run-tty,path=run-tty.sock,server=on,wait=off -serial chardev:run-tty',
      ].join(' '),
    );
    expect(
      line({ runDisk: true, volumes: [volume] }).replace(/ -blockdev {"node-name":"run-[^]*chardev:run-tty/, ''),
    ).toBe(line({ volumes: [volume] }));
    const host = { accelerator: 'tcg', bindAddress: '127.0.0.1', ownUser: true } as const;
    expect(qemuArguments({ ...machine, runDisk: true }, host)).toContain(
      'socket,id=run,path=run/run.sock,server=on,wait=off',
    );
  });
  it.each([
    ['data', 'data'],
    ['a-name-of-20-letters', 'a-name-of-20-letters'],
    ['a-name-of-21-letters-', '12345678901234567890'],
  ])('shows the volume %s to its guest as %s', (name, serial) => {
    const volumes = [{ volumeId: 'vol_00000012345678901234567890', name, path: '/a', readOnly: false }];
    expect(line({ volumes })).toContain(`"serial":"${serial}"`);
  });
});
