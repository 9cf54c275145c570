// What a Debian host must have installed for this driver, and why; for the quickstart to say before it asks apt.

export interface HostPackage {
  readonly name: string;
  /** The program that proves it is there. */
  readonly program: string;
  readonly reason: string;
}

export const qemuPackages: readonly HostPackage[] = [
  { name: 'qemu-system-x86', program: 'qemu-system-x86_64', reason: 'runs the virtual machines' },
  { name: 'qemu-utils', program: 'qemu-img', reason: 'makes their disks as copy-on-write overlays of an image' },
  {
    name: 'seabios',
    program: '/usr/share/seabios/bios-256k.bin',
    reason: 'the firmware that virtual machines boot with',
  },
  { name: 'util-linux', program: 'fallocate', reason: 'drops the start of console logs that have grown too long' },
];
