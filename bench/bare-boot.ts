// A guest booted by hand: what QEMU and the guest take by themselves.

import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { isoImage } from '../src/agent/drivers/guest-life/disk/iso9660.ts';

/** Milliseconds from starting QEMU to the guest's `berth: ready`. */
export function bareBootMs(image: string, directory: string): Promise<number> {
  return withBareGuest({ path: image, format: 'qcow2' }, directory, async ({ bootMs }) => bootMs);
}

export interface BareGuest {
  readonly bootMs: number;
  /** Its serial line is QEMU's standard input and output. */
  readonly qemu: ChildProcessByStdio<Writable, Readable, null>;
}

/** `use` has the guest once it is ready; it is gone afterwards. */
export async function withBareGuest<T>(
  image: { readonly path: string; readonly format: 'qcow2' | 'raw' },
  directory: string,
  use: (guest: BareGuest) => Promise<T>,
): Promise<T> {
  const overlay = join(directory, 'bare.qcow2');
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', image.format, '-b', image.path, overlay]);
  const seed = join(directory, 'bare.iso');
  await writeFile(seed, isoImage('cidata', [{ name: 'meta-data', data: Buffer.from('local-hostname: bare\n') }]));
  const startedAt = performance.now();
  const argv = [
    '-machine',
    'pc',
    '-accel',
    'tcg',
    '-cpu',
    'max',
    '-m',
    '128',
    '-nodefaults',
    '-no-user-config',
    '-display',
    'none',
  ];
  argv.push(
    '-drive',
    `file=${overlay},if=virtio,format=qcow2`,
    '-netdev',
    'user,id=n0',
    '-device',
    'virtio-net-pci,netdev=n0',
    '-drive',
    `file=${seed},media=cdrom,if=ide,readonly=on,format=raw`,
    '-serial',
    'stdio',
  );
  const qemu = spawn('qemu-system-x86_64', argv, { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    let said = '';
    const ready = new Promise<void>((resolve, reject) => {
      qemu.stdout.on('data', (bytes: Buffer) => {
        said += String(bytes);
        if (said.includes('berth: ready')) resolve();
      });
      qemu.once('exit', () => reject(new Error(`the guest ended without a greeting: ${said.slice(-500)}`)));
    });
    await ready;
    return await use({ bootMs: performance.now() - startedAt, qemu });
  } finally {
    const exited = once(qemu, 'exit');
    qemu.kill('SIGKILL');
    if (qemu.exitCode === null && qemu.signalCode === null) await exited;
    await rm(overlay, { force: true });
  }
}
