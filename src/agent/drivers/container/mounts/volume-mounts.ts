// Volumes of containers: the host mounts their file system before the containers start, until the guest releases them, and the containers see its
// folder. A running guest keeps its volumes.

import { mkdir } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Clock } from '../../../../base/clock.ts';
import { describeError } from '../../../../base/log.ts';
import type { HostMount, Mount } from '../../../../api/resources/mount.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { filesOf, filesystemFile, mountVolume, unmountVolume } from '../../../volumes/files/filesystem-volume.ts';
import type { GuestVolume } from '../../driver.ts';
import type { RunVolumes } from '../../guest-life/hypervisor.ts';

/** The mount in the engine's terms. Throws `NotPossible` for a volume that the guest does not have, or that is not a file system. */
export function hostMountOf(mount: Mount, volumes: readonly GuestVolume[]): HostMount {
  const { hostPath, volume: name, ...rest } = mount;
  if (hostPath !== undefined) return { ...rest, hostPath };
  const volume = volumes.find((each) => each.name === name);
  if (volume === undefined) throw new DriverError('NotPossible', `the guest does not have volume "${name}"`);
  assertFilesystem(volume);
  return {
    ...rest,
    ...(volume.readOnly ? { readOnly: true } : {}),
    hostPath: filesOf(dirname(volume.path)),
  };
}

/** Engines check that the path exists; the mount covers this folder. */
export async function makeMountPoints(volumes: readonly GuestVolume[]): Promise<void> {
  for (const volume of volumes) await mkdir(filesOf(dirname(volume.path)), { recursive: true, mode: 0o700 });
}

/** Throws `NotPossible`. */
export async function mountVolumes(clock: Clock, volumes: readonly GuestVolume[]): Promise<void> {
  for (const volume of volumes) {
    assertFilesystem(volume);
    await mountVolume(clock, dirname(volume.path), volume).catch((error: unknown) => {
      throw new DriverError('NotPossible', `cannot mount volume "${volume.name}": ${describeError(error)}`, error);
    });
  }
}

export function releaseVolume(clock: Clock, { path }: GuestVolume): Promise<void> {
  return unmountVolume(clock, dirname(path));
}

function assertFilesystem({ name, path }: GuestVolume): void {
  if (basename(path) !== filesystemFile)
    throw new DriverError(
      'NotPossible',
      `volume "${name}" is a disk for virtual machines, and containers need a file system`,
    );
}

/** Running containers keep the volumes that they were created with. */
export function fixedVolumes(volumes: readonly GuestVolume[]): RunVolumes {
  const refuse = (what: string): Promise<never> =>
    Promise.reject(new DriverError('NotPossible', `${what} while containers have it: stop the instance`));
  return {
    open: () => Promise.resolve(volumes.map((each) => ({ ...each, attached: true }))),
    attach: () => refuse('a volume cannot be attached'),
    detach: () => refuse('a volume cannot be detached'),
    grow: () => refuse('a file system cannot grow'),
    snapshot: () => refuse('no snapshot can be made or removed'),
    onGone: () => {}, // none goes
  };
}
