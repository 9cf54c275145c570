// A host for the libvirt driver's tests: a real libvirtd, images of one boot sector, and the ground truth looked up in /proc, on disk and
// in libvirt. Used by tests only.

import { chmod, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../../base/clock.ts';
import { type Logger, silentLogger } from '../../../base/log.ts';
import { seededPrng } from '../../../base/prng.ts';
import { system, systemClock } from '../../../base/system.ts';
import type { VolumeFiles } from '../../volumes/files/volume-files.ts';
import {
  type ConformanceHolder,
  type ConformanceHost,
  type ConformanceVolumes,
  type ImageKind,
  machineWords,
} from '../conformance.ts';
import type { Driver } from '../driver.ts';
import { isAlive, identify, type ProcessIdentity } from '../../host/processes.ts';
import {
  makeRunDisk,
  makeTestVolumes,
  occupyPort,
  portTaken,
  testImageCache,
  testPortRange,
} from '../qemu/test-host.ts';
import { guestFiles } from '../guest-life/guest-files.ts';
import { domainName } from './domain/domain-xml.ts';
import { createLibvirtDriver, type LibvirtDriverOptions } from './driver.ts';
import type { Libvirt } from './libvirt.ts';
import { openLibvirt } from './open-libvirt.ts';
import type { TestLibvirt } from './test-libvirt.ts';

export interface LibvirtTestHost extends ConformanceHost {
  readonly directory: string;
  readonly imageDirectory: string;
  readonly guestVolumes: ConformanceVolumes;
  readonly outside: ConformanceHolder;
  readonly volumeFiles: VolumeFiles;
  open(change?: Partial<LibvirtDriverOptions>): Driver;
  process(instanceId: string): Promise<ProcessIdentity | null>;
  /** Asks libvirt, past the driver. */
  ask<Result>(act: (libvirt: Libvirt) => Promise<Result>): Promise<Result>;
}

/** Guests of all test hosts of one daemon share it, so it takes part of a second for each and not the whole. */
export async function makeLibvirtTestHost(daemon: TestLibvirt, log: Logger = silentLogger): Promise<LibvirtTestHost> {
  // Spaces, commas and XML's own characters, because users have them; and short, because a socket's path may have 107 bytes only.
  const temporary = await realpath(await mkdtemp(join(tmpdir(), 'berth-test-')));
  await chmod(temporary, 0o711);
  const base = join(temporary, `a <host>, & 'x'`);
  const directory = join(base, 'guests');
  const imageDirectory = join(base, 'images');
  const images = testImageCache(imageDirectory);
  const ask = async <Result>(act: (libvirt: Libvirt) => Promise<Result>): Promise<Result> => {
    const libvirt = await openLibvirt({ path: daemon.path, uri: 'qemu:///system', clock: systemClock });
    try {
      return await act(libvirt);
    } finally {
      libvirt.close();
    }
  };
  const process = async (instanceId: string): Promise<ProcessIdentity | null> =>
    (await processesOf(join(directory, instanceId)))[0] ?? null;
  const { files, volumes } = await makeTestVolumes(join(base, 'volumes'), process);
  await chmod(base, 0o711);
  return {
    words: machineWords,
    volumeFiles: files,
    guestVolumes: { ...volumes, letsGo: false },
    directory,
    imageDirectory,
    process,
    ask,
    open: (change = {}) =>
      createLibvirtDriver({
        directory,
        images,
        clock: systemClock,
        prng: seededPrng(1),
        log,
        accelerator: 'tcg',
        portRange: testPortRange,
        uri: `qemu:///system?socket=${daemon.path}`,
        network: 'user',
        logDirectory: daemon.logDirectory,
        detachPatienceMs: 200, // a boot sector never lets go
        ...change,
      }),
    imageName: (kind: ImageKind) => kind,
    outside: {
      beside: true,
      hold: (instanceId, still) =>
        ask(async (libvirt) => {
          const domain = await libvirt.byName(domainName(instanceId));
          if (domain !== undefined) await libvirt[still ? 'suspend' : 'resume'](domain);
        }),
      standsStill: (instanceId) =>
        ask(async (libvirt) => {
          const domain = await libvirt.byName(domainName(instanceId));
          return domain !== undefined && (await libvirt.state(domain)).state === 'paused';
        }),
    },
    async kill(instanceId) {
      const found = await process(instanceId);
      if (found === null) throw new Error(`no QEMU runs for ${instanceId}`);
      system.signal(found.pid, 'SIGKILL');
      while (await isAlive(found)) await sleep(systemClock, 5);
    },
    async damage(instanceId) {
      for (const name of ['guest.json', 'guest.json.old'])
        await writeFile(join(directory, instanceId, name), '{"version": 1, "instan');
    },
    runningCopies: async (instanceId) => (await processesOf(join(directory, instanceId))).length,
    async traces(instanceId) {
      const processes = await processesOf(join(directory, instanceId));
      const domain = await ask((libvirt) => libvirt.byName(domainName(instanceId)));
      const files = await readdir(join(directory, instanceId)).catch(() => null);
      return [
        ...processes.map(({ pid }) => `process ${pid}`),
        ...(domain === undefined ? [] : [`domain ${domain.uuid}`]),
        ...(files === null ? [] : ['folder', ...files]),
      ];
    },
    makeRunDisk: () => makeRunDisk(base),
    portTaken,
    occupyPort,
    dispose: () => rm(temporary, { recursive: true, force: true }),
  };
}

/** By the path of its disk: guests of tests that run at the same time have the same ids. */
async function processesOf(directory: string): Promise<ProcessIdentity[]> {
  const found: ProcessIdentity[] = [];
  for (const entry of await readdir('/proc')) {
    if (!/^[0-9]+$/.test(entry)) continue;
    const commandLine = await readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => ''); // gone
    if (!commandLine.includes(`"filename":${JSON.stringify(join(directory, guestFiles.disk))}`)) continue;
    const identity = await identify(Number(entry));
    if (identity !== null) found.push(identity);
  }
  return found;
}
