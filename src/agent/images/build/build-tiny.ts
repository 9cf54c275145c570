// The tiny image: Debian's kernel and busybox on a bootable disk, from Debian's packages, in seconds. Nothing is mounted and no
// loop device is used, so it can be built inside a container.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildContext, type BuildPackage, ImageBuildError, runStep } from './build-step.ts';
import { type CpioEntry, cpioArchive } from './cpio.ts';
import { busyboxForWget, tinyInit, tinyNetworkScript, tinyWget } from './tiny-guest.ts';

export const tinyBuildPackages: readonly BuildPackage[] = [
  { name: 'mtools', program: 'mcopy', reason: "fills the tiny image's disk without mounting it" },
  { name: 'dosfstools', program: 'mkfs.vfat', reason: "makes the tiny image's file system" },
  { name: 'syslinux', program: 'syslinux', reason: 'makes the disk bootable' },
  { name: 'qemu-utils', program: 'qemu-img', reason: 'packs the disk as qcow2' },
  { name: 'xz-utils', program: 'xz', reason: 'unpacks images that come as .xz' },
];

/** Part of what tells an old build from a new one: any change here builds again. */
export function tinyRecipe(): string {
  return JSON.stringify([bootMenu, modules, diskMiB, tinyInit, tinyNetworkScript, tinyWget, 'busybox without wget']);
}

const diskMiB = 32;
const kernelPackage = 'linux-image-cloud-amd64'; // its modules are few, and the CD-ROM's are among them
/** One console, no waiting; serial ports beyond the second are not looked for. */
const bootMenu = `DEFAULT berth
PROMPT 0
TIMEOUT 0
LABEL berth
  KERNEL /vmlinuz
  INITRD /initrd
  APPEND console=ttyS0 quiet 8250.nr_uarts=2
`;
/** With what they need; tiny-init.sh knows the order. */
const modules = [
  ...['scsi_common', 'scsi_mod', 'libata', 'ata_piix', 'cdrom', 'sr_mod', 'isofs'],
  ...['button', 'evdev', 'virtio-rng'],
  ...['virtio_ring', 'virtio', 'virtio_pci_modern_dev', 'virtio_pci_legacy_dev', 'virtio_pci'],
  ...['failover', 'net_failover', 'virtio_net', 'virtio_blk', 'virtio_console'],
];

/** Makes `image.qcow2` in the work directory. */
export async function buildTiny(context: BuildContext): Promise<string> {
  const { workDirectory, tell } = context;
  const at = (...names: string[]): string => join(workDirectory, ...names);
  tell('fetching the kernel and busybox');
  await fetchPackages(context);
  tell('packing the first file system');
  const kernelRelease = (await readdir(at('root', 'lib', 'modules')))[0];
  if (kernelRelease === undefined) throw new ImageBuildError(`${kernelPackage} brought no modules`);
  // Not packed: under emulation, unpacking costs more than reading four megabytes.
  await writeFile(at('initrd'), cpioArchive(await firstFileSystem(at('root'), kernelRelease)));
  await writeFile(at('syslinux.cfg'), bootMenu);
  tell('making the disk');
  await writeFile(at('disk.raw'), '');
  await runStep(context, 'truncate', ['--size', `${diskMiB}M`, 'disk.raw']);
  await runStep(context, 'mkfs.vfat', ['-F', '16', '-n', 'BERTH', '-i', 'be274000', '--invariant', 'disk.raw']);
  await runStep(context, 'mcopy', ['-i', 'disk.raw', at('root', 'boot', `vmlinuz-${kernelRelease}`), '::vmlinuz']);
  await runStep(context, 'mcopy', ['-i', 'disk.raw', 'initrd', 'syslinux.cfg', '::']);
  await runStep(context, 'syslinux', ['--install', 'disk.raw']);
  await runStep(context, 'qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', 'disk.raw', 'image.qcow2']);
  return at('image.qcow2');
}

async function fetchPackages(context: BuildContext): Promise<void> {
  const kernel = await realKernelPackage(context).catch(async () => {
    await runStep(context, 'apt-get', ['update']); // a bare machine has no package lists
    return realKernelPackage(context);
  });
  await runStep(context, 'apt-get', ['-o', 'APT::Sandbox::User=root', 'download', kernel, 'busybox-static']);
  for (const file of await readdir(context.workDirectory)) {
    if (file.endsWith('.deb')) await runStep(context, 'dpkg-deb', ['--extract', file, 'root']);
  }
}

/** `linux-image-cloud-amd64` only points to the package of the current version. */
async function realKernelPackage(context: BuildContext): Promise<string> {
  const described = await runStep(context, 'apt-cache', ['show', '--no-all-versions', kernelPackage]);
  const name = /^Depends:.*?\b(linux-image-[0-9][a-z0-9.+-]*)/m.exec(described)?.[1];
  if (name === undefined)
    throw new ImageBuildError(`apt knows no ${kernelPackage}; are Debian's main packages among its sources?`);
  return name;
}

async function firstFileSystem(root: string, kernelRelease: string): Promise<CpioEntry[]> {
  const folder = join(root, 'lib', 'modules', kernelRelease, 'kernel');
  const found = new Map(
    (await readdir(folder, { recursive: true })).map((path) => [path.slice(path.lastIndexOf('/') + 1), path]),
  );
  const moduleFiles: CpioEntry[] = [];
  for (const module of modules) {
    const path = found.get(`${module}.ko`);
    if (path !== undefined) moduleFiles.push(await file(`modules/${module}.ko`, 0o644, join(folder, path)));
    else if (module !== 'virtio-rng') throw new ImageBuildError(`the kernel ${kernelRelease} has no module ${module}`);
  }
  const busybox = await readFile(join(root, 'bin', 'busybox'));
  const ownWget = busyboxForWget(busybox);
  return [
    ...['bin', 'dev', 'modules'].map((path): CpioEntry => ({ kind: 'directory', path })),
    { kind: 'character-device', path: 'dev/console', major: 5, minor: 1 },
    { kind: 'file', path: 'bin/busybox', mode: 0o755, data: ownWget ?? busybox },
    { kind: 'link', path: 'bin/sh', target: 'busybox' },
    { kind: 'file', path: 'init', mode: 0o755, data: Buffer.from(tinyInit) },
    { kind: 'file', path: 'bin/network-script', mode: 0o755, data: Buffer.from(tinyNetworkScript) },
    ...(ownWget === undefined
      ? []
      : [{ kind: 'file', path: 'bin/wget', mode: 0o755, data: Buffer.from(tinyWget) } as const]),
    ...moduleFiles,
  ];
}

async function file(path: string, mode: number, from: string): Promise<CpioEntry> {
  return { kind: 'file', path, mode, data: await readFile(from) };
}
