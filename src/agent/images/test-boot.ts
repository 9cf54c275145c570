// Boots an image under QEMU as the QEMU driver does, for tests: a throw-away overlay, a seed, the console as lines.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../base/test-ports.ts';
import { isoImage } from '../drivers/guest-life/disk/iso9660.ts';

export interface Seed {
  readonly hostname: string;
  readonly userData: string;
}

export interface BootedGuest {
  /** What is published of the guest's port 80 on loopback. */
  readonly httpPort: number;
  console(): string;
  /** Resolves when a console line matches; rejects when QEMU ends first. */
  line(pattern: RegExp): Promise<string>;
  pressPowerButton(): void;
  /** Resolves when QEMU has ended. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

export async function bootImage(
  image: string,
  options: { seed?: Seed; memoryMiB: number; diskSize?: string },
): Promise<BootedGuest> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-boot-'));
  const size = options.diskSize === undefined ? [] : [options.diskSize];
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', image, 'disk.qcow2', ...size], {
    cwd: directory,
  });
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  if (options.seed) {
    const files = [
      {
        name: 'meta-data',
        data: bytes(`instance-id: i-${options.seed.hostname}\nlocal-hostname: ${options.seed.hostname}\n`),
      },
      { name: 'user-data', data: bytes(options.seed.userData) },
    ];
    writeFileSync(join(directory, 'seed.iso'), isoImage('cidata', files));
  }
  const httpPort = await freePort();
  const child = spawn(
    'qemu-system-x86_64',
    [
      ...[
        '-nodefaults',
        '-no-user-config',
        '-display',
        'none',
        '-machine',
        'pc,hpet=off',
        '-accel',
        'tcg,thread=multi',
        '-cpu',
        'max',
      ],
      ...['-m', `${options.memoryMiB}M`, '-sandbox', 'on', '-serial', 'stdio'],
      ...['-qmp', 'unix:qmp.sock,server=on,wait=off'],
      ...['-drive', 'file=disk.qcow2,format=qcow2,if=virtio'],
      ...(options.seed
        ? ['-drive', 'file=seed.iso,format=raw,if=none,id=seed,readonly=on', '-device', 'ide-cd,bus=ide.1,drive=seed']
        : []),
      ...[
        '-netdev',
        `user,id=net0,hostfwd=tcp:127.0.0.1:${httpPort}-:80`,
        '-device',
        'virtio-net-pci,netdev=net0,romfile=',
      ],
      ...['-device', 'virtio-rng-pci'],
    ],
    { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let text = '';
  let running = true;
  const listeners = new Set<() => void>();
  const changed = (): void => {
    for (const listener of listeners) listener();
  };
  const hear = (chunk: Buffer): void => {
    text += chunk.toString('latin1');
    changed();
  };
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      running = false;
      rmSync(directory, { recursive: true, force: true });
      changed();
      resolve();
    });
  });
  return {
    httpPort,
    console: () => text,
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = text
            .split('\n')
            .slice(0, -1)
            .find((line) => pattern.test(line));
          if (found === undefined && running) return;
          listeners.delete(look);
          if (found === undefined) reject(new Error(`QEMU ended without ${pattern}:\n${text.slice(-3000)}`));
          else resolve(found.trim());
        };
        listeners.add(look);
        look();
      }),
    pressPowerButton() {
      const socket = connect(join(directory, 'qmp.sock'));
      socket.on('error', () => {}); // QEMU may end before it has said goodbye
      socket.write('{"execute":"qmp_capabilities"}{"execute":"system_powerdown"}');
    },
    ended,
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
