// A small disk of its own for a store: ext4 in a file. It can be filled, and its power can be cut: what was not flushed is gone then.

import { mkdir, open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { command } from './daemon.ts';

export interface Disk {
  readonly path: string;
  /** Takes all room but some hundred KiB. */
  fill(): Promise<void>;
  free(): Promise<void>;
  /** Everything not flushed is lost from this moment; every write gets an error. Then end what uses the disk, and `powerOn`. */
  powerOff(): Promise<void>;
  powerOn(): Promise<void>;
}

/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: not even the journal is flushed. */
const shutdown =
  'open(my $d, "<", $ARGV[0]) or die "open: $!"; my $f = pack("L", 2); ioctl($d, 0x8004587d, $f) or die "ioctl: $!"';

export async function createDisk(folder: string, name: string, sizeMiB: number): Promise<Disk> {
  const image = join(folder, `${name}.img`);
  const path = join(folder, name);
  const filler = join(path, 'filler');
  await mkdir(path);
  const file = await open(image, 'w');
  await file.truncate(sizeMiB * 1024 * 1024);
  await file.close();
  await command('mkfs.ext4', '-q', '-F', '-m', '0', image);
  const mount = async (): Promise<void> => {
    await command('mount', '-o', 'loop', image, path);
  };
  await mount();
  return {
    path,
    async fill() {
      const { bavail, bsize } = await statfs(path);
      await command('fallocate', '-l', `${Math.max(4096, bavail * bsize - 200 * 1024)}`, filler);
    },
    async free() {
      await rm(filler, { force: true });
    },
    async powerOff() {
      await command('perl', '-e', shutdown, path);
    },
    async powerOn() {
      await command('umount', path);
      await mount();
    },
  };
}
