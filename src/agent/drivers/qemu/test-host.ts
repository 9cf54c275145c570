// A host for the QEMU driver's tests: real QEMU in a temporary folder, images of one boot sector, and the ground truth
// looked up in /proc and on disk. Used by tests only.

import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readlink, realpath, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../../base/clock.ts';
import { isRecord } from '../../../base/is-record.ts';
import { type Logger, silentLogger } from '../../../base/log.ts';
import { seededPrng } from '../../../base/prng.ts';
import { system, systemClock } from '../../../base/system.ts';
import type { ImageCache } from '../../images/image-cache.ts';
import { createHostVolumeFiles } from '../../volumes/files/host-volume-files.ts';
import type { VolumeFiles } from '../../volumes/files/volume-files.ts';
import { type ConformanceHost, type ConformanceVolumes, type ImageKind, machineWords } from '../conformance.ts';
import type { Driver, GuestSpec } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { bySocket } from '../../host/connect-socket.ts';
import { socketFolder } from '../../host/guest-user.ts';
import { bootDisk, type Step } from './boot-sector.ts';
import { qemuFiles } from './command-line.ts';
import { createQemuDriver, type QemuDriverOptions } from './driver.ts';
import { isAlive, type ProcessIdentity } from '../../host/processes.ts';
import { findGuestProcess, killGuestProcess } from './processes.ts';
import { connectQmp, type Qmp } from './qmp.ts';

export interface QemuTestHost extends ConformanceHost {
  readonly directory: string;
  readonly imageDirectory: string;
  readonly guestVolumes: ConformanceVolumes;
  readonly volumeFiles: VolumeFiles;
  open(change?: Partial<QemuDriverOptions>): Driver;
  process(instanceId: string): Promise<ProcessIdentity | null>;
  /** Resolves when QEMU says so (`RunState`); while no driver is open. */
  untilStatus(instanceId: string, status: string): Promise<void>;
}

const greeting: readonly Step[] = [
  { do: 'print', text: 'boot ' },
  { do: 'count-boots' },
  { do: 'print', text: '\nberth: address eth0 10.0.2.15\nberth: ready\n' },
];

/** Each test process has its own: guests of tests that run at the same time have the same ids and would want the same ports. */
export const testPortRange = { first: 20_000 + (system.pid() % 95) * 100, last: 20_099 + (system.pid() % 95) * 100 };

/** Whom guests of tests are run by, where that can be. */
export const testUsers: Pick<QemuDriverOptions, 'users'> =
  system.userId() === 0 ? { users: { first: 1_900_100_000, count: 1000 } } : {};

/** What the images do, by name. */
export const testImages: Readonly<Record<string, readonly Step[]>> = {
  obedient: [...greeting, { do: 'await-power-button' }, { do: 'power-off' }],
  stubborn: [...greeting, { do: 'halt' }],
  'short-lived': [...greeting, { do: 'power-off' }],
  /** Boots, then writes 16 MiB to its disk's file. */
  writer: [...greeting, { do: 'write-clusters', count: 256 }, { do: 'print', text: 'all written\n' }, { do: 'halt' }],
  /** Boots, and says nothing of an address. */
  silent: [{ do: 'print', text: 'berth: ready\n' }, { do: 'halt' }],
  /** Never boots: nothing of it is ever heard. */
  dead: [{ do: 'halt' }],
  /** Says nothing until it is spoken to. */
  mute: [{ do: 'echo' }],
  /** Boots, and says back what it hears at its second serial port. */
  answering: [...greeting, { do: 'echo', port: 2 }],
  panicking: [...greeting, { do: 'panic' }, { do: 'halt' }],
  chatterbox: [{ do: 'print', text: `${'chatter '.repeat(15)}\n` }, { do: 'repeat' }],
};

export async function makeQemuTestHost(log: Logger = silentLogger): Promise<QemuTestHost> {
  // Spaces and commas, because users have them; resolved, because the kernel shows resolved paths.
  // And long, because a socket's path may have 107 bytes only.
  const temporary = await realpath(await mkdtemp(join(tmpdir(), 'berth-test-')));
  await chmod(temporary, 0o711); // guests may run as users of their own
  const base = join(temporary, `a host, with spaces ${'x'.repeat(100)}`);
  const directory = join(base, 'guests');
  const imageDirectory = join(base, 'images');
  const images = testImageCache(imageDirectory);
  const process = (instanceId: string): Promise<ProcessIdentity | null> =>
    findGuestProcess(join(directory, instanceId));
  const { files, volumes } = await makeTestVolumes(join(base, 'volumes, too'), process);
  /** It takes one connection at a time: only while no driver has it. */
  const askQemu = async <Result>(instanceId: string, act: (qmp: Qmp) => Promise<Result>): Promise<Result> => {
    const guest = join(directory, instanceId);
    const path = join(guest, await socketFolder(guest), qemuFiles.qmp);
    const ears = { clock: systemClock, timeoutMs: 10_000, onEvent: () => {} };
    const qmp = await bySocket(path, (short) => connectQmp({ path: short, ...ears }));
    try {
      return await act(qmp);
    } finally {
      qmp.close();
    }
  };
  return {
    words: machineWords,
    directory,
    imageDirectory,
    volumeFiles: files,
    guestVolumes: { ...volumes, letsGo: false },
    process,
    open: (change = {}) =>
      createQemuDriver({
        directory,
        images,
        clock: systemClock,
        prng: seededPrng(1),
        log,
        accelerator: 'tcg',
        portRange: testPortRange,
        detachPatienceMs: 200, // a boot sector never lets go
        ...change,
      }),
    imageName: (kind: ImageKind) => kind,
    untilStatus: (instanceId, wanted) =>
      askQemu(instanceId, async (qmp) => {
        for (;;) {
          const status = await qmp.execute('query-status');
          if (isRecord(status) && status['status'] === wanted) return;
          await sleep(systemClock, 5);
        }
      }),
    outside: {
      beside: false,
      hold: (instanceId, still) =>
        askQemu(instanceId, async (qmp) => void (await qmp.execute(still ? 'stop' : 'cont'))),
      standsStill: (instanceId) =>
        askQemu(instanceId, async (qmp) => {
          const status = await qmp.execute('query-status');
          return isRecord(status) && status['running'] === false;
        }),
    },
    async kill(instanceId) {
      const found = await process(instanceId);
      if (found === null) throw new Error(`no QEMU runs for ${instanceId}`);
      await killGuestProcess(found, { directory: join(directory, instanceId) });
      while (await isAlive(found)) await new Promise((resolve) => systemClock.setTimer(5, () => resolve(undefined)));
    },
    async damage(instanceId) {
      for (const name of ['guest.json', 'guest.json.old'])
        await writeFile(join(directory, instanceId, name), '{"version": 1, "instan');
    },
    runningCopies: async (instanceId) => ((await process(instanceId)) === null ? 0 : 1),
    async traces(instanceId) {
      const found = await process(instanceId);
      const files = await readdir(join(directory, instanceId)).catch(() => null);
      return [...(found === null ? [] : [`process ${found.pid}`]), ...(files === null ? [] : ['folder', ...files])];
    },
    makeRunDisk: () => makeRunDisk(base),
    portTaken,
    occupyPort,
    dispose: () => rm(join(base, '..'), { recursive: true, force: true }),
  };
}

/** Its size is no multiple of a sector's, and only its owner may read it. */
export async function makeRunDisk(directory: string): Promise<string> {
  const path = join(directory, 'a program, with spaces');
  await writeFile(path, 'the first line\nthe second line\n', { mode: 0o600 });
  return path;
}

/** Real files, and what a guest's process has open of them. */
export async function makeTestVolumes(
  directory: string,
  process: (instanceId: string) => Promise<ProcessIdentity | null>,
): Promise<{
  readonly files: VolumeFiles;
  readonly volumes: Pick<ConformanceVolumes, 'make' | 'openBy' | 'look'>;
}> {
  await mkdir(directory, { recursive: true, mode: 0o711 });
  const files = createHostVolumeFiles({ directory, directoryMode: 0o711, clock: systemClock });
  return {
    files,
    volumes: {
      async make(volumeId) {
        await files.make({ volumeId, sizeBytes: 1024 * 1024 }, new AbortController().signal);
        return { volumeId, name: `data-${volumeId.slice(-1)}`, path: files.pathOf(volumeId), readOnly: false };
      },
      async openBy(instanceId) {
        const found = await process(instanceId);
        if (found === null) return [];
        const handles = await readdir(`/proc/${found.pid}/fd`);
        const paths = await Promise.all(
          handles.map((each) => readlink(`/proc/${found.pid}/fd/${each}`).catch(() => '')),
        );
        return [...new Set(paths.flatMap((path) => /\/(vol_[0-9a-z]{26})\//.exec(path)?.[1] ?? []))].sort();
      },
      async look(volumeId) {
        const seen = await files.look(volumeId);
        if (seen.found !== 'volume') throw new Error(`${volumeId} is not there, but ${JSON.stringify(seen)}`);
        return { sizeBytes: seen.sizeBytes, snapshots: seen.snapshots.map(({ name }) => name) };
      },
    },
  };
}

export function testSpec(change: Partial<GuestSpec> = {}): GuestSpec {
  return {
    instanceId: 'inst_00000000000000000000000001',
    incarnation: 1,
    name: 'web-1',
    hostname: 'web-1',
    cpus: 1,
    memoryMiB: 64,
    diskGiB: 0,
    imageName: 'obedient',
    image: {
      source: 'file:///nowhere',
      decompress: 'none',
      format: 'raw',
      nocloud: true,
      architecture: 'amd64',
      aliases: [],
      preload: false,
      defaults: {},
    },
    ports: [],
    sshKeys: [],
    userData: '',
    ...change,
  };
}

/** Images of one boot sector, written when first asked for. */
export function testImageCache(directory: string): ImageCache {
  return {
    async ensure(name, _image, { signal, onProgress }) {
      onProgress?.({ stage: 'downloading', doneBytes: 0, totalBytes: 100 });
      if (name === 'endless') {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        throw new DriverError('Aborted', 'the pull was given up');
      }
      const steps = testImages[name];
      if (steps === undefined) throw new DriverError('ImageUnavailable', `there is no image "${name}"`);
      await mkdir(directory, { recursive: true });
      const path = join(directory, `${name}-${randomUUID()}.raw`);
      const disk = bootDisk(steps);
      await writeFile(path, disk);
      return { path, format: 'raw', digest: `sha256:${'0'.repeat(64)}`, virtualSizeBytes: disk.length };
    },
    list: async () => [],
  };
}

export async function occupyPort(): Promise<{ readonly port: number; release(): Promise<void> }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, release: () => new Promise<void>((resolve) => server.close(() => resolve())) };
}

export function portTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(true));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(false)));
  });
}
