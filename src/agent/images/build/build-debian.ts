// The Debian 12 image with the real cloud-init, from Debian's packages, in about a minute. No loop device is used, and
// what is mounted is so in a namespace of the build's own where there can be one, so it can be built inside a container or chroot.

import { chmod, glob, mkdir, open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { mebibyte } from '../../../base/bytes.ts';
import { type BuildContext, type BuildPackage, ImageBuildError, runStep } from './build-step.ts';
import * as guest from './debian-guest.ts';
import { mbrSector } from './mbr.ts';

export const debianBuildPackages: readonly BuildPackage[] = [
  { name: 'mmdebstrap', program: 'mmdebstrap', reason: "installs Debian's packages into a folder" },
  { name: 'e2fsprogs', program: 'mke2fs', reason: "makes the Debian image's file system without mounting it" },
  { name: 'mtools', program: 'mcopy', reason: "fills the image's boot partition without mounting it" },
  { name: 'dosfstools', program: 'mkfs.vfat', reason: "makes the image's boot partition" },
  { name: 'syslinux', program: 'syslinux', reason: 'makes the disk bootable' },
  { name: 'syslinux-common', program: '/usr/lib/syslinux/mbr/mbr.bin', reason: 'makes the disk bootable' },
  { name: 'qemu-utils', program: 'qemu-img', reason: 'packs the disk as qcow2' },
];

const release = 'bookworm';
const bootLoaderSector = '/usr/lib/syslinux/mbr/mbr.bin';
/** Room for two kernels with their first file systems while one replaces the other. */
const boot = { atMiB: 1, sizeMiB: 95 } as const;
const root = { atMiB: 96, sizeMiB: 1440 } as const;

/** Part of what tells an old build from a new one: any change here builds again. */
export function debianRecipe(): string {
  return JSON.stringify([guest, release, boot, root]);
}

/** Makes `image.qcow2` in the work directory. */
export async function buildDebian(context: BuildContext): Promise<string> {
  context.tell('installing Debian packages');
  const rootDirectory = join(context.workDirectory, 'root');
  await installDebian(context, rootDirectory);
  return assembleDebian(context, rootDirectory);
}

async function installDebian(context: BuildContext, rootDirectory: string): Promise<void> {
  const early = join(context.workDirectory, 'early');
  for (const [path, text] of Object.entries(guest.earlyFiles)) {
    await writeUnder(early, path, text);
    if (guest.executables.includes(path)) await chmod(join(early, path), 0o755);
  }
  await runStep(context, 'mmdebstrap', [
    ...['--mode=root', '--variant=minbase', '--format=directory', '--architectures=amd64'],
    `--include=${guest.guestPackages.join(',')}`,
    ...guest.packageFilter.map((option) => `--dpkgopt=${option}`),
    `--essential-hook=sync-in ${early} /`,
    ...[release, rootDirectory],
  ]);
}

/** From the folder with installed packages to the disk. */
async function assembleDebian(context: BuildContext, rootDirectory: string): Promise<string> {
  const { workDirectory, tell } = context;
  const at = (name: string): string => join(workDirectory, name);
  tell('configuring the guest');
  await configure(context, rootDirectory);
  tell('making the disk');
  const kernel = (await readdir(join(rootDirectory, 'boot'))).find((name) => name.startsWith('vmlinuz-'));
  if (kernel === undefined) throw new ImageBuildError('no kernel was installed');
  const initrd = kernel.replace('vmlinuz-', 'initrd.img-');
  await writeFile(at('syslinux.cfg'), guest.bootMenu);
  await makeEmpty(at('boot.fat'), boot.sizeMiB * mebibyte);
  const firstSector = boot.atMiB * 2048;
  await runStep(context, 'mkfs.vfat', ['-F', '16', '-n', 'BERTHBOOT', '-h', String(firstSector), 'boot.fat']);
  await runStep(context, 'mcopy', ['-i', 'boot.fat', join(rootDirectory, 'boot', kernel), '::vmlinuz']);
  await runStep(context, 'mcopy', ['-i', 'boot.fat', join(rootDirectory, 'boot', initrd), '::initrd']);
  await runStep(context, 'mcopy', ['-i', 'boot.fat', 'syslinux.cfg', '::']);
  await runStep(context, 'syslinux', ['--install', 'boot.fat']);

  await makeEmpty(at('disk.raw'), (root.atMiB + root.sizeMiB) * mebibyte);
  // Inode tables are written now, so that no guest spends its first minute on that.
  const extended = `offset=${root.atMiB * mebibyte},lazy_itable_init=0,lazy_journal_init=0`;
  const options = ['-q', '-F', '-t', 'ext4', '-L', 'root', '-m', '1', '-E', extended, '-d', rootDirectory];
  await runStep(context, 'mke2fs', [...options, 'disk.raw', `${root.sizeMiB}M`]);
  await writeInto(at('disk.raw'), boot.atMiB * mebibyte, await readFile(at('boot.fat')));
  const sector = mbrSector({
    bootCode: await readFile(bootLoaderSector),
    diskId: guest.diskId,
    partitions: [
      { bootable: true, type: 0x0e, firstSector, sectors: boot.sizeMiB * 2048 },
      { bootable: false, type: 0x83, firstSector: root.atMiB * 2048, sectors: root.sizeMiB * 2048 },
    ],
  });
  await writeInto(at('disk.raw'), 0, sector);
  tell('packing the disk');
  await runStep(context, 'qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', 'disk.raw', 'image.qcow2']);
  return at('image.qcow2');
}

async function configure(context: BuildContext, rootDirectory: string): Promise<void> {
  for (const pattern of guest.removedFiles) {
    for await (const path of glob(pattern.slice(1), { cwd: rootDirectory })) {
      await rm(join(rootDirectory, path), { recursive: true, force: true });
    }
  }
  for (const [path, text] of Object.entries(guest.files)) await writeUnder(rootDirectory, path, text);
  for (const path of guest.executables) await chmod(join(rootDirectory, path), 0o755);
  for (const [path, target] of Object.entries(guest.links)) await symlink(target, join(rootDirectory, path));
  await mkdir(join(rootDirectory, 'boot', 'loader'), { recursive: true });
  await runStep(context, 'chroot', [rootDirectory, 'systemctl', '--quiet', 'enable', ...guest.enabledUnits]);
  await runStep(context, 'chroot', [rootDirectory, 'systemctl', '--quiet', 'disable', ...guest.disabledUnits]);
  await runStep(context, 'chroot', [rootDirectory, 'systemctl', '--quiet', 'mask', ...guest.maskedUnits]);
}

async function writeUnder(folder: string, path: string, text: string): Promise<void> {
  const full = join(folder, path);
  await mkdir(dirname(full), { recursive: true });
  await rm(full, { force: true }); // never through a link
  await writeFile(full, text, { mode: 0o644 });
}

async function makeEmpty(path: string, sizeBytes: number): Promise<void> {
  const file = await open(path, 'w');
  await file.truncate(sizeBytes);
  await file.close();
}

async function writeInto(path: string, position: number, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.write(bytes, 0, bytes.length, position);
  } finally {
    await file.close();
  }
  if ((await stat(path)).size < position + bytes.length) throw new ImageBuildError(`${path} is too short`);
}
